// faultline replay: saved cases against their expectations.
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/campaign_flags.h"
#include "fuzz/cli/campaign_report.h"
#include "fuzz/cli/command.h"
#include "fuzz/cli/words.h"

namespace faultline::cli {
namespace {

struct ReplayFlags {
  CampaignFlags campaign;
  std::vector<std::string> paths;
  bool ignore_known = false;
};

std::string signatures(const std::vector<std::string>& list) {
  return list.empty() ? "pass" : fmt::format("{}", fmt::join(list, ", "));
}

// Each that is not as expected ends with three lines, as a failure of `fuzz` does.
void printOutcomes(const Console& console, const CampaignSummary& summary, const ReplayFlags& flags) {
  std::map<std::string, uint64_t> counts;
  for (const ReplayOutcome& outcome : summary.outcomes) {
    ++counts[toString(outcome.kind)];
    if (outcome.kind == ReplayOutcome::Kind::AsExpected) {
      // One case alone is replayed to see it fail.
      if (summary.cases == 1 && !outcome.got.empty()) {
        console.line();
        console.paragraph(
            fmt::format("fails as expected: group {}: {}", outcome.group, signatures(outcome.got)));
        console.line(outcome.detail);
      }
      continue;
    }
    console.line();
    if (outcome.kind == ReplayOutcome::Kind::Skipped) {
      console.paragraph(
          fmt::format("skipped: {} ({}): {}", outcome.case_path, outcome.group, outcome.reason));
      continue;
    }
    console.paragraph(fmt::format("{}: group {}, expected {}, got {}", toString(outcome.kind), outcome.group,
                                  signatures(outcome.expected), signatures(outcome.got)));
    if (!outcome.reason.empty()) console.line(outcome.reason);
    if (!outcome.detail.empty()) console.line(outcome.detail);
    console.line(signatures(outcome.got.empty() ? outcome.expected : outcome.got));
    console.line(outcome.case_path);
    console.line(fmt::format("faultline replay {} --lane {}{}", shellQuoted(outcome.case_path), outcome.group,
                             pluginArguments(flags.campaign)));
  }
  std::string text;
  for (const auto& [kind, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kind);
  console.line();
  if (!text.empty()) console.paragraph("Expectations: " + text);
  if (summary.other_files > 0) console.line(fmt::format("Not a case, left out: {}", summary.other_files));
  if (summary.set_aside > 0)
    console.line(fmt::format("In flaky/ and inflight/, left out: {}", summary.set_aside));
}

Result<ExitCode> runReplay(const ReplayFlags& flags) {
  ReplayOptions options;
  if (const auto applied = applyCampaign(flags.campaign, options); !applied) {
    return tl::make_unexpected(applied.error());
  }
  options.paths = flags.paths;
  options.ignore_known = flags.ignore_known;
  const Console console(flags.campaign.json);
  ProgressLine line;
  if (line.shown()) {
    options.progress = [&line](const CampaignProgress& progress) {
      if (!progress.last) line.update(progressText(progress));
    };
  }
  const auto outcome = replayCampaign(options);
  line.clear();
  if (outcome) {
    for (const Error& error : outcome->bad_inputs)
      complainOf(fmt::format("faultline replay: {}", error.str()));
    if (!outcome->bad_inputs.empty()) {
      complain(wrap(fmt::format("{} could not be read: mend or remove {}; generators/case/README.md has the "
                                "grammar, `faultline show FILE` tells whether it reads",
                                plural(outcome->bad_inputs.size(), "file"),
                                outcome->bad_inputs.size() == 1 ? "it" : "them"),
                    kWidth) +
               "\n");
    }
    if (outcome->cases == 0 && !outcome->bad_inputs.empty())
      return finishCampaign(outcome, flags.campaign.json);
    printTotals(console, *outcome);
    printTallies(console, *outcome);
    printOutcomes(console, *outcome, flags);
  }
  return finishCampaign(outcome, flags.campaign.json);
}

}  // namespace

Action defineReplay(CLI::App& app) {
  auto flags = std::make_shared<ReplayFlags>();
  app.add_option("PATH", flags->paths, "case files, and folders of them")->required();
  app.add_flag("--ignore-known", flags->ignore_known, "known issues count as new");
  addCampaign(app, flags->campaign, "those that the cases' expectations name");
  app.footer("  faultline replay found corpus\n\n" + std::string(kCampaignExitCodes));
  return [flags] { return runReplay(*flags); };
}

}  // namespace faultline::cli
