// faultline fuzz: generate and check.
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/campaign_flags.h"
#include "fuzz/cli/campaign_report.h"
#include "fuzz/cli/command.h"
#include "fuzz/cli/generate_options.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/options.h"
#include "fuzz/cli/words.h"
#include "oracles/campaign/setup.h"

namespace faultline::cli {
namespace {

struct FuzzFlags {
  CampaignFlags campaign;
  GenerateFlags generate;
  std::optional<uint64_t> cases, seed, max_failures;
  std::optional<double> time;
  bool exit_first = false, ignore_known = false, no_seeds = false, resume = false;
  std::string out;
};

Result<FuzzOptions> fuzzOptions(const FuzzFlags& flags) {
  FuzzOptions options;
  if (const auto applied = applyCampaign(flags.campaign, options); !applied) {
    return tl::make_unexpected(applied.error());
  }
  const auto generate = generateOptions(flags.generate);
  if (!generate) return tl::make_unexpected(generate.error());
  options.ops_added = generate->ops_added;
  options.ops_removed = generate->ops_removed;
  options.features = generate->features;
  options.cases = flags.cases;
  options.seconds = flags.time;
  options.seed = flags.seed;
  // Chosen here, so that it stands on the screen before anything can go wrong.
  if (!options.seed && !flags.resume) options.seed = randomSeed();
  options.exit_first = flags.exit_first;
  options.max_failures = flags.max_failures.value_or(0);
  options.ignore_known = flags.ignore_known;
  if (flags.no_seeds) options.seeds_dir.clear();
  options.out_dir = flags.out;
  options.resume = flags.resume;
  return options;
}

// "; 12 cases of corpus/seeds come first …": they count, beside those that --cases asks for.
std::string seedsText(const std::string& folder) {
  std::error_code code;
  uint64_t count = 0;
  for (std::filesystem::recursive_directory_iterator at(folder, code), end; !code && at != end;
       at.increment(code)) {
    count += at->path().extension() == ".case" ? 1 : 0;
  }
  if (count == 0) return "";
  return fmt::format(
      "; {} from corpus/seeds come first and are not counted in --cases: --no-seeds leaves them out",
      plural(count, "case"));
}

// The whole series is a function of the seed, so a case that was not saved can be made again.
std::string pasteCommand(const FuzzFlags& flags, const CampaignSummary& summary,
                         const FailureGroup& failure) {
  if (!failure.case_path.empty()) return "faultline replay " + shellQuoted(failure.case_path);
  const std::string judged =
      judgedAs(failure, flags.campaign) + (flags.ignore_known ? " --ignore-known" : "");
  // Positions count the seeds first.
  if (failure.index < summary.seeds) return "faultline replay " + FuzzOptions().seeds_dir + judged;
  std::string made =
      fmt::format("faultline gen --seed {} --index {}", summary.seed, failure.index - summary.seeds);
  for (const std::string& op : flags.generate.ops) made += " --ops " + shellQuoted(op);
  for (const std::string& feature : flags.generate.features) made += " --features " + shellQuoted(feature);
  return fmt::format("{} > f.case; faultline replay f.case{}", made, judged);
}

Result<ExitCode> runFuzz(const FuzzFlags& flags) {
  auto options = fuzzOptions(flags);
  if (!options) return tl::make_unexpected(options.error());
  const Console console(flags.campaign.json);
  if (options->seed) {
    console.paragraph(
        fmt::format("seed {}, torch {}{}", *options->seed, torchVersion(), seedsText(options->seeds_dir)));
  }
  std::fflush(nullptr);
  ProgressLine line;
  if (line.shown()) {
    options->progress = [&line](const CampaignProgress& progress) {
      if (progress.last) {
        line.clear();
      } else {
        line.update(progressText(progress));
      }
    };
  }
  const auto outcome = fuzzCampaign(*options);
  line.clear();
  if (outcome) {
    if (!options->seed) console.line(fmt::format("seed {}, torch {}", outcome->seed, torchVersion()));
    printTotals(console, *outcome);
    printShares(console, *outcome);
    printTallies(console, *outcome);
    printFailures(console, *outcome,
                  [&](const FailureGroup& failure) { return pasteCommand(flags, *outcome, failure); });
  }
  return finishCampaign(outcome, flags.campaign.json);
}

}  // namespace

Action defineFuzz(CLI::App& app) {
  auto flags = std::make_shared<FuzzFlags>();
  addCount(app, "--cases", flags->cases, "stop after so many generated cases");
  addDuration(app, "--time", flags->time, "stop after that time: 120s, 10m; without either: on Ctrl-C");
  addCount(app, "--seed", flags->seed, "of everything; without it: a random one, printed");
  addGenerate(app, flags->generate);
  app.add_flag("--no-seeds", flags->no_seeds, "do not begin with the cases in corpus/seeds");
  app.add_flag("--ignore-known", flags->ignore_known, "known issues count as new");
  CLI::Option* max = addCount(app, "--maxfail", flags->max_failures, "stop at so many distinct new failures");
  app.add_flag("-x,--exitfirst", flags->exit_first, "stop at the first new failure")->excludes(max);
  CLI::Option* out =
      app.add_option("--out", flags->out, "a folder for failing cases and the state of the run");
  out->type_name("DIR");
  app.add_flag("--resume", flags->resume, "go on with the run in --out")->needs(out);
  addCampaign(app, flags->campaign, "engine");
  app.footer("  faultline fuzz --lane engine,stock --time 2m --out found\n\n" +
             std::string(kCampaignExitCodes));
  return [flags] { return runFuzz(*flags); };
}

}  // namespace faultline::cli
