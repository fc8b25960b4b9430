// What people see of a campaign: a progress line while it runs, then the summary.
#pragma once
#include <functional>
#include <string>

#include "fuzz/cli/console.h"
#include "fuzz/cli/exit_code.h"
#include "oracles/campaign/campaign.h"

namespace faultline::cli {

// "214 cases, 35/s, 98 % valid, skipped: throws 3, 2 distinct failures"
std::string progressText(const CampaignProgress& progress);

// One row per oracle × lane.
void printTallies(const Console& console, const CampaignSummary& summary);

// "20 cases in 3.1 s (6.5/s): 19 passed, 1 skipped (throws)"
void printTotals(const Console& console, const CampaignSummary& summary);

// "Shares of the cases: differentiable 93%, view 41%"
void printShares(const Console& console, const CampaignSummary& summary);

// What was found, then for each failure three lines: its signature, the file of its case, and
// `command(failure)`.
using PasteCommand = std::function<std::string(const FailureGroup&)>;
void printFailures(const Console& console, const CampaignSummary& summary, const PasteCommand& command);

// Writes the JSON and gives the exit code. An error of kind Io is a fault of ours: it is printed, and the
// code is Broken; other errors are handed on.
Result<ExitCode> finishCampaign(const Result<CampaignSummary>& outcome, const std::string& json_path);

}  // namespace faultline::cli
