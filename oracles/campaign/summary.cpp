#include "oracles/campaign/summary.h"

#include <csignal>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace faultline {

using nlohmann::json;

namespace {

json toJson(const OracleLaneTally& tally) {
  return {{"applicable", tally.applicable}, {"passed", tally.passed},           {"failed", tally.failed},
          {"skipped", tally.skipped},       {"comparisons", tally.comparisons}, {"rounding", tally.rounding},
          {"seconds", tally.seconds},       {"reasons", tally.reasons}};
}

OracleLaneTally tallyFromJson(const json& from) {
  OracleLaneTally tally;
  tally.applicable = from.at("applicable");
  tally.passed = from.at("passed");
  tally.failed = from.at("failed");
  tally.skipped = from.at("skipped");
  tally.comparisons = from.at("comparisons");
  tally.rounding = from.at("rounding");
  tally.seconds = from.at("seconds");
  tally.reasons = from.at("reasons").get<std::map<std::string, uint64_t>>();
  return tally;
}

json nullIfEmpty(const std::string& text) { return text.empty() ? json() : json(text); }
std::string emptyIfNull(const json& value) { return value.is_null() ? "" : value.get<std::string>(); }

json toJson(const FailureGroup& group) {
  return {{"signature", group.signature},
          {"oracle", group.oracle},
          {"lane", group.lane},
          {"kind", group.kind},
          {"culprit", nullIfEmpty(group.culprit)},
          {"count", group.count},
          {"index", group.index},
          {"known", nullIfEmpty(group.known)},
          {"case", nullIfEmpty(group.case_path)},
          {"detail", group.detail}};
}

FailureGroup groupFromJson(const json& from) {
  FailureGroup group;
  group.signature = from.at("signature");
  group.oracle = from.at("oracle");
  group.lane = from.at("lane");
  group.kind = from.at("kind");
  group.culprit = emptyIfNull(from.at("culprit"));
  group.count = from.at("count");
  group.index = from.at("index");
  group.known = emptyIfNull(from.at("known"));
  group.case_path = emptyIfNull(from.at("case"));
  group.detail = from.at("detail");
  return group;
}

json toJson(const ReplayOutcome& outcome) {
  return {{"case", outcome.case_path},    {"group", outcome.group}, {"outcome", toString(outcome.kind)},
          {"expected", outcome.expected}, {"got", outcome.got},     {"reason", nullIfEmpty(outcome.reason)}};
}

bool isMismatch(const ReplayOutcome& outcome) {
  return outcome.kind == ReplayOutcome::Kind::New || outcome.kind == ReplayOutcome::Kind::Stale ||
         outcome.kind == ReplayOutcome::Kind::Changed;
}

}  // namespace

const char* toString(ReplayOutcome::Kind kind) {
  switch (kind) {
    case ReplayOutcome::Kind::AsExpected:
      return "as_expected";
    case ReplayOutcome::Kind::New:
      return "new";
    case ReplayOutcome::Kind::Stale:
      return "stale";
    case ReplayOutcome::Kind::Changed:
      return "changed";
    case ReplayOutcome::Kind::Flaky:
      return "flaky";
    case ReplayOutcome::Kind::Skipped:
      return "skipped";
  }
  return "?";
}

uint64_t CampaignSummary::newFailures() const {
  const auto is_new = [](const FailureGroup& group) { return group.known.empty(); };
  return static_cast<uint64_t>(std::count_if(failures.begin(), failures.end(), is_new) +
                               std::count_if(outcomes.begin(), outcomes.end(), isMismatch));
}

uint64_t CampaignSummary::comparisons() const {
  uint64_t total = 0;
  for (const auto& [oracle, lanes_of_it] : oracles) {
    for (const auto& [lane, tally] : lanes_of_it) {
      total += tally.comparisons;
    }
  }
  return total;
}

int CampaignSummary::exitCode() const {
  if (!bad_inputs.empty()) {
    return 2;
  }
  if (newFailures() != 0) {
    return 1;
  }
  if (interrupted_by != 0) {
    return 128 + interrupted_by;
  }
  // A case that kills every lane is judged without a single comparison.
  const bool checked = command == "replay" ? cases != 0 : comparisons() != 0 || !failures.empty();
  return checked ? 0 : 3;
}

json CampaignSummary::toJson() const {
  json to{{"schema", fmt::format("faultline.{}/1", command)},
          {"version", FAULTLINE_VERSION},
          {"torch", torch},
          {"seed", seed},
          {"lanes", lanes},
          {"cases", cases},
          {"seeds", seeds},
          {"passed", passed},
          {"failed", failed},
          {"flaky", flaky},
          {"skipped", skipped},
          {"traits", traits},
          {"seconds", seconds},
          {"rate", seconds > 0 ? static_cast<double>(cases) / seconds : 0.0},
          {"interrupted_by", interrupted_by},
          {"stopped_early", stopped_early}};
  json& shares = to["shares"] = json::object();
  uint64_t not_judged = 0;
  for (const auto& [reason, count] : skipped) {
    not_judged += count;
  }
  const auto share = [&](uint64_t count) {
    return cases != 0 ? static_cast<double>(count) / static_cast<double>(cases) : 0.0;
  };
  shares["valid"] = share(cases - not_judged);
  for (const char* trait : {"differentiable", "control_flow", "mutation", "view", "subgraph", "flips"}) {
    shares[trait] = 0.0;
  }
  for (const auto& [trait, count] : traits) {
    // Ops are too many for a table of shares; their counts stand in `traits`.
    if (trait.rfind("op:", 0) != 0) {
      shares[trait] = share(count);
    }
  }
  json& counted = to["lane_shares"] = json::object();
  for (const auto& [name, lane_share] : lane_shares) {
    counted[name] = {lane_share.hits, lane_share.of};
    shares[name] =
        lane_share.of != 0 ? static_cast<double>(lane_share.hits) / static_cast<double>(lane_share.of) : 0.0;
  }
  json& by_oracle = to["oracles"] = json::object();
  for (const auto& [oracle, lanes_of_it] : oracles) {
    for (const auto& [lane, tally] : lanes_of_it) {
      by_oracle[oracle][lane] = faultline::toJson(tally);
    }
  }
  json& groups = to["failures"] = json::array();
  for (const FailureGroup& group : failures) {
    groups.push_back(faultline::toJson(group));
  }
  if (command == "replay") {
    json& list = to["outcomes"] = json::array();
    for (const ReplayOutcome& outcome : outcomes) {
      list.push_back(faultline::toJson(outcome));
    }
    json& errors = to["bad_inputs"] = json::array();
    for (const Error& error : bad_inputs) {
      errors.push_back(error.str());
    }
    to["other_files"] = other_files;
    to["set_aside"] = set_aside;
  }
  return to;
}

Result<CampaignSummary> readSummary(const json& from) {
  try {
    CampaignSummary summary;
    const std::string schema = from.at("schema");
    if (schema != "faultline.fuzz/1" && schema != "faultline.check/1") {
      return fail(ErrorKind::Invalid, fmt::format("schema '{}' instead of 'faultline.fuzz/1'", schema));
    }
    summary.command = schema.substr(10, schema.find('/') - 10);
    summary.torch = from.at("torch");
    summary.seed = from.at("seed");
    summary.lanes = from.at("lanes").get<std::vector<std::string>>();
    summary.cases = from.at("cases");
    summary.seeds = from.at("seeds");
    summary.passed = from.at("passed");
    summary.failed = from.at("failed");
    summary.flaky = from.at("flaky");
    summary.skipped = from.at("skipped").get<std::map<std::string, uint64_t>>();
    summary.seconds = from.at("seconds");
    summary.traits = from.at("traits").get<std::map<std::string, uint64_t>>();
    if (from.contains("lane_shares")) {
      for (const auto& [name, counts] : from.at("lane_shares").items()) {
        summary.lane_shares[name] = {counts.at(0), counts.at(1)};
      }
    }
    for (const auto& [oracle, lanes_of_it] : from.at("oracles").items()) {
      for (const auto& [lane, tally] : lanes_of_it.items()) {
        summary.oracles[oracle][lane] = tallyFromJson(tally);
      }
    }
    for (const json& group : from.at("failures")) {
      summary.failures.push_back(groupFromJson(group));
    }
    return summary;
  } catch (const json::exception& e) {
    return fail(ErrorKind::Invalid, fmt::format("not a faultline summary: {}", e.what()));
  }
}

}  // namespace faultline
