// What a campaign found, as plain data, and its JSON form (`--json`, index.json).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "faultline/error.h"

namespace faultline {

struct OracleLaneTally {
  uint64_t applicable = 0;  // cases that meet the oracle's precondition
  uint64_t passed = 0, failed = 0, skipped = 0;
  uint64_t comparisons = 0, rounding = 0;
  double seconds = 0;                       // of executing the lane
  std::map<std::string, uint64_t> reasons;  // of the skips
};

// Failures with one signature (and one known issue, or none).
struct FailureGroup {
  std::string signature, oracle, lane, kind;
  std::string culprit;    // empty until reduced
  std::string known;      // id of the known issue, empty: new
  uint64_t count = 0;     // cases that show it
  uint64_t index = 0;     // position of the first of them
  std::string case_path;  // its file; empty: not saved
  std::string detail;     // the first one's message, for people
};

// What replay found out about one expectation of one case.
struct ReplayOutcome {
  enum class Kind {
    AsExpected,
    New,      // expected to pass, fails
    Stale,    // expected to fail, passes
    Changed,  // fails in another way than expected
    Flaky,    // not three times of three
    Skipped,  // not judged, `reason` says why
  };
  Kind kind = Kind::AsExpected;
  std::string case_path, group, reason;
  std::string detail;  // the message of the first failure that is not expected, else of the first one
  std::vector<std::string> expected, got;  // signatures, sorted; empty: pass
};
const char* toString(ReplayOutcome::Kind kind);  // "as_expected", "new", …

struct CampaignSummary {
  std::string command;  // "fuzz", "replay", "check"
  std::string torch;
  uint64_t seed = 0;  // fuzz
  std::vector<std::string> lanes;

  uint64_t cases = 0;  // judged ones: passed + failed + flaky + every skipped
  uint64_t seeds = 0;  // of these, from the folder of seeds
  uint64_t passed = 0, failed = 0, flaky = 0;
  std::map<std::string, uint64_t> skipped;  // whole cases, by reason
  std::string reference_error;              // CaseResult's, of the first case that has one
  std::map<std::string, uint64_t> traits;   // cases that have the trait (generators/generate/generate.h)
  struct LaneShare {
    uint64_t hits = 0, of = 0;
    bool operator==(const LaneShare&) const = default;
  };
  std::map<std::string, LaneShare> lane_shares;  // what lanes count (oracles/trace.h): "answered", "pruned"
  std::map<std::string, std::map<std::string, OracleLaneTally>> oracles;  // oracle, lane
  std::vector<FailureGroup> failures;                                     // by first case
  double seconds = 0;

  std::vector<ReplayOutcome> outcomes;  // replay: in the order of paths
  uint64_t other_files = 0;             // replay: files in folders that are no *.case
  uint64_t set_aside = 0;               // replay: files under flaky/ and inflight/ of --out folders
  std::vector<Error> bad_inputs;        // replay: what could not be read

  int interrupted_by = 0;      // signal number
  bool stopped_early = false;  // exit_first or max_failures

  uint64_t newFailures() const;  // distinct ones; replay: outcomes that are new, stale or changed
  uint64_t comparisons() const;
  // 0, 1, 2, 3, 129, 130 or 143 as the command line promises.
  int exitCode() const;
  // "faultline.fuzz/1" and so on.
  nlohmann::json toJson() const;
};

// The inverse of toJson, for --resume and for reports. Refuses what is not such a file.
Result<CampaignSummary> readSummary(const nlohmann::json& json);

}  // namespace faultline
