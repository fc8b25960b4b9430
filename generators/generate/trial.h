// Tries a run of a finished case: did it run or throw, and which of its results carry a gradient. Values are
// not looked at.
#pragma once
#include <functional>
#include <vector>

#include "generators/case/case.h"
#include "generators/generate/execution.h"

namespace faultline {

struct TrialResult {
  bool forward = false;             // ran without throwing
  bool backward = false;            // so did backward from all results that require grad
  std::vector<bool> requires_grad;  // per graph return; false for those that are no tensors
  bool anyGradient() const;
};

using NodeObserver = std::function<void(const torch::jit::Node& node, const Execution& execution)>;

// Profile nodes and subgraphs may stand in the graph.
TrialResult tryRun(const Case& c, const CaseRun& run, const NodeObserver& observer = {});
bool tryDoubleBackward(const Case& c, const CaseRun& run);
// The same forward in libtorch's interpreter, which must agree.
bool interpreterRuns(const Case& c, const CaseRun& run);

}  // namespace faultline
