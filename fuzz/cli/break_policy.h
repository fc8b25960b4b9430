// The flags of `break` that say where to cut.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "faultline/break_policy.h"
#include "oracles/exec/prepare.h"

namespace CLI {
class App;
}

namespace faultline::cli {

struct PolicyFlags {
  bool inside = false;
  std::string policy, compat;
  std::vector<std::string> after;
  std::optional<uint64_t> every, first_bucket_bytes, bucket_bytes;
};

void addPolicy(CLI::App& app, PolicyFlags& flags);

// Flags, else what the case's own plan says, else one piece.
// A balance by time is measured here, on the inputs of the case's first run.
Result<BreakPolicy> policyOf(const PolicyFlags& flags, const Case& c, const PreparedCase& prepared);

}  // namespace faultline::cli
