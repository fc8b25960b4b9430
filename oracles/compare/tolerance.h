// Tolerances by dtype, class of ops and depth (tolerances.def).
#pragma once
#include <cstddef>

#include <c10/core/ScalarType.h>
#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

struct Tolerance {
  double relative = 0, absolute = 0;  // 0, 0: exact
};

// What of a graph decides its tolerances.
struct NumericProfile {
  size_t ops = 0;            // that compute tensors
  bool accumulates = false;  // matrix products or reductions among them
};
NumericProfile numericProfile(const torch::jit::Graph& graph);

// Exact for integers and bools. Complex dtypes have the tolerance of their parts.
Tolerance toleranceFor(at::ScalarType dtype, const NumericProfile& profile, bool gradient);

}  // namespace faultline
