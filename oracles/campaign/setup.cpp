#include "oracles/campaign/setup.h"

#include <sched.h>
#include <torch/version.h>

#include <fmt/format.h>

#include "generators/generate/generate.h"
#include "generators/ops/op_row.h"
#include "oracles/lane.h"
#include "oracles/oracle.h"

namespace faultline {

namespace {

// Cores this process may use: a container's share rather than the machine's.
unsigned usableCores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

Result<void> refuse(const char* what, const std::string& word, const char* list) {
  return fail(ErrorKind::Invalid,
              fmt::format("no {} '{}': `faultline list {}` shows them", what, word, list));
}

}  // namespace

std::string torchVersion() {
  return fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
}

std::string torchRelease() { return fmt::format("{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR); }

Result<std::vector<std::string>> lanesOf(const std::vector<std::string>& words) {
  Result<std::vector<std::string>> lanes = resolveLanes(words);
  if (lanes) {
    lanes->erase(std::remove(lanes->begin(), lanes->end(), "reference"), lanes->end());
  }
  return lanes;
}

std::vector<std::string> lanesOfGroups(const std::set<std::string>& groups) {
  std::vector<std::string> lanes;
  for (const LaneInfo& lane : allLanes()) {
    if (lane.name != "reference" && groups.count(lane.group) != 0) {
      lanes.push_back(lane.name);
    }
  }
  return lanes;
}

Result<void> checkOptions(const CampaignOptions& options) {
  for (const std::string& oracle : options.oracles) {
    if (findOracle(oracle) == nullptr) {
      return refuse("oracle", oracle, "oracles");
    }
  }
  if (!(options.case_timeout > 0)) {
    return fail(ErrorKind::Invalid, fmt::format("a case timeout of {} s", options.case_timeout));
  }
  return {};
}

Result<void> checkGeneratorOptions(const FuzzOptions& options) {
  for (const auto* words : {&options.ops_added, &options.ops_removed}) {
    for (const std::string& op : *words) {
      if (findOpRow(op) == nullptr) {
        return refuse("op", op, "ops");
      }
    }
  }
  for (const std::string& word : options.features) {
    const bool signed_word = word.size() > 1 && (word[0] == '+' || word[0] == '-');
    const auto& all = generatorFeatures();
    if (!signed_word || std::none_of(all.begin(), all.end(), [&](const GeneratorFeature& feature) {
          return feature.name == word.substr(1);
        })) {
      return refuse("feature", signed_word ? word.substr(1) : word, "features");
    }
  }
  return {};
}

Job jobTemplate(const CampaignOptions& options, const std::vector<std::string>& lanes) {
  Job job;
  job.judge.lanes = lanes;
  job.judge.oracles = options.oracles;
  job.judge.oracle.strict = options.strict;
  job.timeout = options.case_timeout;
  return job;
}

RunnerOptions runnerOptions(const CampaignOptions& options, const std::string& recorder_dir) {
  RunnerOptions runner;
  runner.jobs = options.jobs != 0 ? options.jobs : usableCores();
  runner.in_process = options.in_process;
  runner.rss_limit_mb = options.rss_limit_mb;
  runner.renew_after = std::max<uint64_t>(options.renew_after, 1);
  runner.command = options.worker_command;
  runner.plugins = options.plugins;
  runner.recorder_dir = recorder_dir;
  return runner;
}

void tally(CampaignSummary& summary, const CaseResult& result) {
  for (const ShareTrace& share : result.shares) {
    summary.lane_shares[share.name].hits += share.hits;
    summary.lane_shares[share.name].of += share.of;
  }
  std::map<std::string, double> seconds;
  for (const auto& [lane, used] : result.lane_seconds) {
    seconds[lane] += used;
  }
  for (const Judgement& judgement : result.judgements) {
    const auto oracle = summary.oracles.find(judgement.oracle);
    if (oracle == summary.oracles.end()) {
      continue;
    }
    const auto lane = oracle->second.find(judgement.lane);
    if (lane == oracle->second.end()) {
      continue;
    }
    OracleLaneTally& to = lane->second;
    const Verdict& verdict = judgement.verdict;
    to.applicable += verdict.applicable() ? 1 : 0;
    to.passed += verdict.passed() ? 1 : 0;
    to.failed += verdict.failed() ? 1 : 0;
    to.comparisons += verdict.comparisons();
    to.rounding += verdict.rounding();
    to.seconds += seconds[judgement.lane];
    if (verdict.skipped()) {
      ++to.skipped;
      ++to.reasons[verdict.reason()];
    }
  }
}

void prepareTallies(CampaignSummary& summary, const std::vector<std::string>& oracles) {
  for (const OracleInfo& oracle : allOracles()) {
    if (!oracles.empty() && std::find(oracles.begin(), oracles.end(), oracle.name) == oracles.end()) {
      continue;
    }
    for (const std::string& name : summary.lanes) {
      const LaneInfo* lane = findLane(name);
      if (lane != nullptr && oracle.judges(lane->name, lane->group)) {
        summary.oracles[oracle.name][name];
      }
    }
  }
}

std::string skipReason(const CaseResult& result) {
  if (!result.skip.empty()) {
    return result.skip;
  }
  std::set<std::string> reasons;
  for (const Judgement& judgement : result.judgements) {
    if (!judgement.verdict.skipped()) {
      return {};
    }
    reasons.insert(judgement.verdict.reason());
  }
  return reasons.size() == 1 ? *reasons.begin() : "nothing_compared";
}

}  // namespace faultline
