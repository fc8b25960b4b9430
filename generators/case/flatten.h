// Graphs of functions and modules without calls (internal to generators/case).
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include "faultline/error.h"

namespace faultline {

// Inlines every call, and turns the `with torch.no_grad():` of saved modules into ops. Refuses, with the
// place in the source where it is known, what no self-contained graph can say: functions as values, objects
// of script classes other than modules.
Result<void> flattenCalls(torch::jit::Graph& graph);

}  // namespace faultline
