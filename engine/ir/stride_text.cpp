#include "engine/ir/stride_text.h"

#include <algorithm>

namespace faultline {
namespace {

bool complete(const PartialSizes& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](const auto& size) { return size.has_value(); });
}

}  // namespace

c10::VaryingShape<c10::Stride> strideProperties(const PartialSizes& sizes, const PartialSizes& strides) {
  if (complete(sizes) && complete(strides)) {
    const auto type = c10::TensorType::create(std::nullopt, std::nullopt, c10::VaryingShape<int64_t>(sizes),
                                              c10::VaryingShape<int64_t>(strides), std::nullopt);
    return type->stride_properties();
  }
  std::vector<size_t> known;
  for (size_t dim = strides.size(); dim > 0; --dim) {
    if (strides[dim - 1]) {
      known.push_back(dim - 1);
    }
  }
  std::stable_sort(known.begin(), known.end(), [&](size_t a, size_t b) { return *strides[a] < *strides[b]; });
  std::vector<std::optional<c10::Stride>> entries(strides.size());
  for (size_t i = 0; i < known.size(); ++i) {
    const int64_t stride = *strides[known[i]];
    bool contiguous = stride == 1;
    if (i > 0 && stride != 0 && sizes[known[i - 1]]) {
      const int64_t inner = *strides[known[i - 1]];
      int64_t expected = 0;
      contiguous |= !__builtin_mul_overflow(inner, *sizes[known[i - 1]], &expected) && stride == expected;
    }
    entries[i] = c10::Stride(known[i], contiguous, static_cast<size_t>(stride));
  }
  return c10::VaryingShape<c10::Stride>(entries);
}

}  // namespace faultline
