// faultline check: the oracles on a model of the user's own.
#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/campaign_flags.h"
#include "fuzz/cli/campaign_report.h"
#include "fuzz/cli/command.h"
#include "fuzz/cli/model_file.h"
#include "fuzz/cli/options.h"
#include "fuzz/cli/words.h"

namespace faultline::cli {
namespace {

struct CheckFlags {
  CampaignFlags campaign;
  std::string model, out;
  std::vector<std::string> inputs;
  bool ignore_known = false;
};

// One case only, so per pair: what it came to, on how many comparisons it rests, or why it was skipped.
void printVerdicts(const Console& console, const CampaignSummary& summary) {
  Table table({"oracle", "lane", "verdict", "compared", ""});
  table.alignRight(3);
  table.wrapLast();
  for (const auto& [oracle, lanes] : summary.oracles) {
    for (const auto& [lane, tally] : lanes) {
      std::string reasons;
      for (const auto& [reason, count] : tally.reasons) reasons += (reasons.empty() ? "" : ", ") + reason;
      table.add({oracle, lane,
                 tally.failed > 0   ? "failed"
                 : tally.passed > 0 ? "passed"
                                    : "skipped",
                 std::to_string(tally.comparisons), reasons});
    }
  }
  if (!table.empty()) console.print(table.str());
}

bool holdsGrad(const InputSpec& input) {
  return input.requires_grad || std::any_of(input.elements.begin(), input.elements.end(), holdsGrad);
}

std::string whyNoGradient(const Case& c) {
  bool any_grad = false, any_backward = false;
  for (const CaseRun& run : c.runs) {
    any_grad = any_grad || std::any_of(run.inputs.begin(), run.inputs.end(), holdsGrad);
    any_backward = any_backward || !run.backwards.empty();
  }
  if (!any_grad) return "nothing requires grad: --input 'NAME=float32[…]:grad' makes an input do";
  if (!any_backward) return "no run asks for a backward: a line 'backward: all' does";
  return "no result that was reached has one";
}

bool anyGradients(const CampaignSummary& summary) {
  const auto oracle = summary.oracles.find("gradient_equiv");
  if (oracle == summary.oracles.end()) return true;  // nobody asked
  return std::any_of(oracle->second.begin(), oracle->second.end(),
                     [](const auto& lane) { return lane.second.applicable > 0; });
}

// What it means that the case as a whole was not judged, and what to do about it.
std::string meaningOf(const std::string& reason, const CheckOptions& options, const std::string& thrown) {
  if (reason == kReferenceTimeout) {
    const auto flag = [](double seconds) { return fmt::format("--case-timeout{}{:g}s", kUnbroken, seconds); };
    return fmt::format(
        "Eager PyTorch, which lanes are compared with, takes too long for {}, in which it runs twice and "
        "then "
        "each lane: the model itself is that slow. Give a larger one, as {}.",
        flag(options.case_timeout), flag(10 * options.case_timeout));
  }
  if (reason == "reference_nondeterministic") {
    return "Two runs of eager PyTorch with the same inputs and the same seed differ, so that there is "
           "nothing "
           "to compare lanes with. Memory that is read before anything is written into it (torch.empty, "
           "empty_like, new_empty) is the usual cause.";
  }
  return thrown.empty() ? "No lane could be compared with eager PyTorch."
                        : "Eager PyTorch throws, and lanes have to throw alike: " + thrown;
}

// A failure that is not there each time is none, and is not shown as one.
std::string flakyWords(const CampaignSummary& summary, const CheckOptions& options) {
  std::string text = "A failure was seen, but not in every repetition (flaky), so that it is not counted";
  if (summary.comparisons() != 0 || !summary.failures.empty()) return text + ".";
  return text +
         fmt::format(
             "; nothing else was judged. The usual cause is a model that just about passes the limit "
             "of time or of memory: give larger ones, as --case-timeout{0}{1:g}s, --rss-limit-mb{0}{2}.",
             kUnbroken, 10 * options.case_timeout, 4 * options.rss_limit_mb);
}

bool anyReasons(const CampaignSummary& summary) {
  for (const auto& [oracle, lanes] : summary.oracles) {
    for (const auto& [lane, tally] : lanes) {
      if (!tally.reasons.empty()) return true;
    }
  }
  return false;
}

std::string pasteCommand(const CheckFlags& flags, const FailureGroup& failure) {
  if (!failure.case_path.empty()) return "faultline replay " + shellQuoted(failure.case_path);
  std::string command = "faultline check " + shellQuoted(flags.model);
  for (const std::string& input : flags.inputs) command += " --input " + shellQuoted(input);
  return command + judgedAs(failure, flags.campaign);
}

Result<ExitCode> runCheck(const CheckFlags& flags) {
  CheckOptions options;
  if (const auto applied = applyCampaign(flags.campaign, options); !applied) {
    return tl::make_unexpected(applied.error());
  }
  ModelCaseOptions hooked;
  hooked.hooks = true;
  auto c = loadModelFile(flags.model, flags.inputs, hooked);
  if (!c) return tl::make_unexpected(c.error());
  const std::string hint = hintAtValues(*c), why_no_gradient = whyNoGradient(*c);
  options.cases.push_back({flags.model, std::move(*c)});
  options.out_dir = flags.out;
  options.ignore_known = flags.ignore_known;
  const Console console(flags.campaign.json);
  const auto outcome = checkCampaign(options);
  if (outcome) {
    console.paragraph(
        fmt::format("{} in lanes {}, against the reference:", flags.model, fmt::join(outcome->lanes, ", ")));
    // A case that was skipped before the first lane has nothing to say of any.
    if (outcome->skipped.empty() || anyReasons(*outcome)) printVerdicts(console, *outcome);
    const std::string thrown = outcome->reference_error.empty() ? "" : outcome->reference_error + hint;
    for (const auto& [reason, count] : outcome->skipped) {
      console.line("The case as a whole was skipped: " + reason);
      console.paragraph(meaningOf(reason, options, thrown));
    }
    if (outcome->interrupted_by != 0) {
      console.line(fmt::format("Interrupted by signal {}: what is missing was not looked at.",
                               outcome->interrupted_by));
    } else if (outcome->flaky > 0) {
      console.paragraph(flakyWords(*outcome, options));
    } else if (outcome->skipped.empty() && !thrown.empty()) {
      console.paragraph("Eager PyTorch throws, and lanes have to throw alike: " + thrown);
    } else if (outcome->comparisons() != 0 && !anyGradients(*outcome)) {
      console.paragraph(fmt::format("No gradient was compared, for {}.", why_no_gradient));
    }
    printFailures(console, *outcome,
                  [&](const FailureGroup& failure) { return pasteCommand(flags, failure); });
  }
  return finishCampaign(outcome, flags.campaign.json);
}

}  // namespace

Action defineCheck(CLI::App& app) {
  auto flags = std::make_shared<CheckFlags>();
  app.add_option("MODEL", flags->model, "TorchScript source, a .pt archive, IR or a case")->required();
  addInput(app, flags->inputs);
  app.add_option("--out", flags->out, "a folder for the case, when it fails")->type_name("DIR");
  app.add_flag("--ignore-known", flags->ignore_known, "known issues count as new");
  addCampaign(app, flags->campaign, "engine,stock");
  app.footer("  faultline check corpus/examples/mlp4.py --input 'x=float32[16,8]'\n\n" +
             std::string(kCampaignExitCodes));
  return [flags] { return runCheck(*flags); };
}

}  // namespace faultline::cli
