#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "oracles/campaign/campaign.h"
#include "oracles/campaign/case_files.h"
#include "oracles/campaign/hunt.h"
#include "oracles/campaign/setup.h"

namespace faultline {

using nlohmann::json;

namespace {

// What must be the same for two halves of a campaign to be one.
json optionsOf(const FuzzOptions& options, const std::vector<std::string>& lanes, uint64_t seeds) {
  return {{"torch", torchVersion()},
          {"lanes", lanes},
          {"oracles", options.oracles},
          {"strict", options.strict},
          {"ignore_known", options.ignore_known},
          {"ops_added", options.ops_added},
          {"ops_removed", options.ops_removed},
          {"features", options.features},
          {"seeds", seeds}};
}

struct Progress {
  CampaignSummary summary;
  uint64_t next = 0;
};

Result<Progress> progressOf(const json& index, const json& options, std::optional<uint64_t> seed) {
  Result<CampaignSummary> summary = readSummary(index);
  if (!summary) {
    return tl::make_unexpected(summary.error());
  }
  const json state = index.value("state", json::object());
  if (summary->command != "fuzz" || !state.is_object() || !state.contains("next") ||
      !state["next"].is_number_unsigned()) {
    return fail(ErrorKind::Invalid, "nothing to resume: not the folder of a fuzz");
  }
  const json before = state.value("options", json::object());
  for (const auto& [name, value] : options.items()) {
    if (before.value(name, json()) != value) {
      return fail(ErrorKind::Invalid, fmt::format("cannot resume with another '{}': it was {}, now it is {}",
                                                  name, before.value(name, json()).dump(), value.dump()));
    }
  }
  if (seed && *seed != summary->seed) {
    return fail(ErrorKind::Invalid,
                fmt::format("cannot resume with seed {}: it was {}", *seed, summary->seed));
  }
  return Progress{std::move(*summary), state["next"].get<uint64_t>()};
}

uint64_t randomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 16 ^ device()) & 0xFFFFFFFFFFFF;
}

}  // namespace

Result<CampaignSummary> fuzzCampaign(const FuzzOptions& options) {
  Result<void> checked = checkOptions(options);
  checked = checked ? checkGeneratorOptions(options) : checked;
  if (!checked) {
    return tl::make_unexpected(checked.error());
  }
  Result<std::vector<std::string>> lanes =
      lanesOf(options.lanes.empty() ? std::vector<std::string>{"engine"} : options.lanes);
  if (!lanes) {
    return tl::make_unexpected(lanes.error());
  }
  CaseFiles seeds;
  std::error_code code;
  if (!options.seeds_dir.empty() && std::filesystem::is_directory(options.seeds_dir, code)) {
    seeds = readCaseFiles({options.seeds_dir});
    if (!seeds.bad.empty()) {
      return tl::make_unexpected(seeds.bad.front());
    }
  }
  Result<std::unique_ptr<OutDir>> out = OutDir::open(options.out_dir, options.resume);
  if (!out) {
    return tl::make_unexpected(out.error());
  }
  const json fixed = optionsOf(options, *lanes, seeds.cases.size());
  Progress progress;
  if ((*out)->index()) {
    Result<Progress> before = progressOf(*(*out)->index(), fixed, options.seed);
    if (!before) {
      before.error().file = (*out)->path();
      return tl::make_unexpected(before.error());
    }
    progress = std::move(*before);
  } else {
    progress.summary.command = "fuzz";
    progress.summary.torch = torchVersion();
    progress.summary.seed = options.seed ? *options.seed : randomSeed();
    progress.summary.lanes = *lanes;
  }
  const uint64_t seed = progress.summary.seed;
  const Job form = jobTemplate(options, *lanes);
  const auto source = [&](uint64_t position) -> std::optional<Job> {
    Job job = form;
    if (position < seeds.cases.size()) {
      job.text = seeds.cases[position].text;
      return job;
    }
    GenerateSource generate;
    generate.seed = seed;
    generate.index = position - seeds.cases.size();
    generate.options.ops_added = options.ops_added;
    generate.options.ops_removed = options.ops_removed;
    generate.options.features = options.features;
    if (options.cases && generate.index >= *options.cases) {
      return std::nullopt;
    }
    job.generate = std::move(generate);
    return job;
  };
  Hunt hunt(options, **out, std::move(progress.summary), progress.next, {{"options", fixed}});
  return hunt.run(source, seeds.cases.size(), options.seconds);
}

Result<CampaignSummary> checkCampaign(const CheckOptions& options) {
  Result<void> checked = checkOptions(options);
  if (!checked) {
    return tl::make_unexpected(checked.error());
  }
  Result<std::vector<std::string>> lanes =
      lanesOf(options.lanes.empty() ? std::vector<std::string>{"engine", "stock"} : options.lanes);
  if (!lanes) {
    return tl::make_unexpected(lanes.error());
  }
  Result<std::unique_ptr<OutDir>> out = OutDir::open(options.out_dir, false);
  if (!out) {
    return tl::make_unexpected(out.error());
  }
  CampaignSummary summary;
  summary.command = "check";
  summary.torch = torchVersion();
  summary.lanes = *lanes;
  const Job form = jobTemplate(options, *lanes);
  const auto source = [&](uint64_t position) -> std::optional<Job> {
    if (position >= options.cases.size()) {
      return std::nullopt;
    }
    Job job = form;
    job.text = writeCase(options.cases[position].value);
    return job;
  };
  Hunt hunt(options, **out, std::move(summary), 0, json::object());
  return hunt.run(source, 0, std::nullopt);
}

}  // namespace faultline
