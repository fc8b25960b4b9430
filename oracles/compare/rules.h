// Differences that are none: each a rule with its reason, so that nobody widens a tolerance or skips a case
// for them.
#pragma once
#include <cstdint>
#include <vector>

#include "oracles/trace.h"

namespace faultline {

// Strides of a dimension with one element, and of a tensor without elements, address nothing: kernels fill in
// what they like.
bool sameStrides(const std::vector<int64_t>& sizes, const std::vector<int64_t>& a,
                 const std::vector<int64_t>& b);

// The interpreter rethrows whatever it meets as RuntimeError, so a class is only another one where both sides
// know theirs. Texts differ with the kernel that was called (mm or addmm say it differently); only messages
// that errors.def tells apart are different errors.
bool sameError(const ErrorTrace& a, const ErrorTrace& b);

// Strides of gradients are not compared anywhere: autograd promises none, and whether it takes a gradient
// over or adds into a copy depends on who else holds it.

}  // namespace faultline
