// What `strides=[…]` in a type stands for.
#pragma once
#include <ATen/core/jit_type.h>

#include <optional>
#include <vector>

namespace faultline {

using PartialSizes = std::vector<std::optional<int64_t>>;

// Types keep strides as a list sorted by memory order, with contiguity marks; text says only the strides.
// This is the one reading of that text: libtorch's own where everything is known, otherwise sorted by stride,
// an unknown size never taken as making its neighbour contiguous. A dimension without a known stride has no
// entry of its own.
c10::VaryingShape<c10::Stride> strideProperties(const PartialSizes& sizes, const PartialSizes& strides);

}  // namespace faultline
