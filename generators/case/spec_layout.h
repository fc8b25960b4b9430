// Where the elements of a described tensor lie (internal to generators/case).
#pragma once
#include "generators/case/spec.h"

namespace faultline {

struct SpecLayout {
  int64_t elements = 0;          // of the tensor
  int64_t storage_elements = 0;  // from the storage's begin to behind the last element
  std::vector<int64_t> strides;  // as given, or contiguous
};

// Refuses what is not a tensor: negative numbers, strides that do not fit, more than a gibibyte.
Result<SpecLayout> specLayout(const InputSpec& spec);

// Calls visit(storage index) for each element in logical order.
template <class Visit>
void forEachElement(const std::vector<int64_t>& sizes, const SpecLayout& layout, int64_t offset,
                    Visit visit) {
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t at = offset;
  for (int64_t i = 0; i < layout.elements; ++i) {
    visit(at);
    for (size_t d = sizes.size(); d-- > 0;) {
      at += layout.strides[d];
      if (++index[d] < sizes[d]) break;
      at -= layout.strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

// Real numbers per element: 2 for complex dtypes.
inline int64_t partsOf(at::ScalarType dtype) { return c10::isComplexType(dtype) ? 2 : 1; }

}  // namespace faultline
