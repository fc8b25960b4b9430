#include "fuzz/cli/campaign_flags.h"

#include <dlfcn.h>

#include <set>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/options.h"
#include "fuzz/cli/words.h"
#include "oracles/lane.h"
#include "oracles/oracle.h"

namespace faultline::cli {

void addCampaign(CLI::App& app, CampaignFlags& flags, const std::string& default_lanes) {
  addWords(app, "--lane", flags.lanes, "LANE,…", "lanes or groups of lanes; default: " + default_lanes);
  addWords(app, "--oracle", flags.oracles, "ORACLE,…", "only these oracles; default: all");
  app.add_flag("--strict", flags.strict, "hook_order compares total orders");
  CLI::Option* jobs = addCount(app, "-j,--jobs", flags.jobs, "worker processes; default: one per core");
  CLI::Option* timeout = addDuration(
      app, "--case-timeout", flags.case_timeout,
      "a case that takes longer is a failure, shown by four tries (check: none where eager PyTorch "
      "takes longer); default: 30s");
  CLI::Option* limit = addCount(app, "--rss-limit-mb", flags.rss_limit_mb,
                                "a worker above it is killed; 0: no limit; default: 2048");
  app.add_flag("--in-process", flags.in_process,
               "no worker processes, for debuggers: a crash ends the program, and no limit of time or memory "
               "holds")
      ->excludes(jobs)
      ->excludes(timeout)
      ->excludes(limit);
  addRepeated(app, "--plugin", flags.plugins, "SO", "a shared library that registers lanes; repeatable");
  addJson(app, flags.json);
}

constexpr uint64_t kLeastRssMb = 512;

Result<void> applyCampaign(const CampaignFlags& flags, CampaignOptions& options) {
  if (flags.jobs == uint64_t{0}) return fail(ErrorKind::Invalid, "--jobs: expected at least 1");
  if (flags.jobs.value_or(1) > 1024) return fail(ErrorKind::Invalid, "--jobs: expected at most 1024");
  std::vector<std::string> known;
  for (const OracleInfo& oracle : allOracles()) known.push_back(oracle.name);
  for (const std::string& word : flags.oracles) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      return tl::make_unexpected(unknownWord("oracle", word, known, "faultline list oracles"));
    }
  }
  std::set<std::string> loaded;
  for (const std::string& plugin : flags.plugins) {
    const size_t lanes_before = allLanes().size();
    if (dlopen(plugin.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      return fail(ErrorKind::Io, fmt::format("--plugin: {}", dlerror()));
    }
    if (loaded.insert(plugin).second && allLanes().size() == lanes_before) {
      return fail(ErrorKind::Invalid,
                  fmt::format("--plugin {}: registers no lane: one of its static initialisers has to call "
                              "faultline::registerLane (oracles/lane.h)",
                              plugin));
    }
  }
  if (const auto lanes = resolveLanes(flags.lanes); !lanes) return tl::make_unexpected(lanes.error());
  options.lanes = flags.lanes;
  options.oracles = flags.oracles;
  options.strict = flags.strict;
  options.in_process = flags.in_process;
  options.plugins = flags.plugins;
  options.jobs = static_cast<unsigned>(flags.jobs.value_or(0));
  if (flags.case_timeout) options.case_timeout = *flags.case_timeout;
  if (const uint64_t limit = flags.rss_limit_mb.value_or(0); limit != 0 && limit < kLeastRssMb) {
    return fail(ErrorKind::Invalid,
                fmt::format("--rss-limit-mb: expected 0 or at least {}, what a worker with "
                            "PyTorch takes before its first case",
                            kLeastRssMb));
  }
  if (flags.rss_limit_mb) options.rss_limit_mb = *flags.rss_limit_mb;
  return {};
}

std::string pluginArguments(const CampaignFlags& flags) {
  std::string arguments;
  for (const std::string& plugin : flags.plugins) arguments += " --plugin " + shellQuoted(plugin);
  return arguments + (flags.strict ? " --strict" : "");
}

std::string judgedAs(const FailureGroup& failure, const CampaignFlags& flags) {
  std::string arguments;
  if (findLane(failure.lane) != nullptr) arguments += " --lane " + failure.lane;
  if (findOracle(failure.oracle) != nullptr) arguments += " --oracle " + failure.oracle;
  return arguments + pluginArguments(flags);
}

}  // namespace faultline::cli
