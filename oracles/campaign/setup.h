// What all campaigns begin with: names checked, lanes resolved, runner made.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "oracles/campaign/campaign.h"
#include "oracles/workers/runner.h"

namespace faultline {

// Version of the torch that runs, "2.15.0", and the part of it that expectations name, "2.15".
std::string torchVersion();
std::string torchRelease();

// Lane names of these words, the reference left out. Refuses unknown ones.
Result<std::vector<std::string>> lanesOf(const std::vector<std::string>& words);

// All lanes of these groups. A group that is none of allLanes()' has none ("generator").
std::vector<std::string> lanesOfGroups(const std::set<std::string>& groups);

// Refuses oracles, ops and features that do not exist, and numbers that make no sense.
Result<void> checkOptions(const CampaignOptions& options);
Result<void> checkGeneratorOptions(const FuzzOptions& options);

// A job with everything but what is judged.
Job jobTemplate(const CampaignOptions& options, const std::vector<std::string>& lanes);
RunnerOptions runnerOptions(const CampaignOptions& options, const std::string& recorder_dir);

// Adds what the oracles said to the totals: judgements of the wanted lanes and oracles only.
void tally(CampaignSummary& summary, const CaseResult& result);
// Every pair of a wanted oracle and a lane that it judges, with nothing counted yet.
void prepareTallies(CampaignSummary& summary, const std::vector<std::string>& oracles);

// Why a case in which nothing failed counts as skipped; empty: something was compared.
std::string skipReason(const CaseResult& result);

}  // namespace faultline
