// `break --what-if`: the same plan with other caps for its buckets.
#pragma once
#include <string>
#include <vector>

#include "faultline/graph_break.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"

namespace faultline::cli {

struct OtherCap {
  int64_t bucket_bytes = 0;
  BreakPlan plan;
};

// `caps` as written on the command line. Refuses a policy without buckets and what is no number of bytes.
Result<std::vector<OtherCap>> whatIf(const std::vector<std::string>& caps, const BreakPolicy& policy,
                                     const torch::jit::Graph& graph);
void printWhatIf(const Console& console, const std::vector<OtherCap>& caps);  // nothing where there are none
void describeWhatIf(const std::vector<OtherCap>& caps, Json& result);

}  // namespace faultline::cli
