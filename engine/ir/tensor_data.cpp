#include "engine/ir/tensor_data.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace faultline {
namespace {

template <class T>
bool nanAt(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return std::isnan(static_cast<float>(value));
}

bool isNan(at::ScalarType dtype, const char* bytes) {
  switch (dtype) {
    case at::kDouble: {
      double value;
      std::memcpy(&value, bytes, sizeof(value));
      return std::isnan(value);
    }
    case at::kFloat:
      return nanAt<float>(bytes);
    case at::kHalf:
      return nanAt<at::Half>(bytes);
    case at::kBFloat16:
      return nanAt<at::BFloat16>(bytes);
    case at::kFloat8_e5m2:
      return nanAt<at::Float8_e5m2>(bytes);
    case at::kFloat8_e4m3fn:
      return nanAt<at::Float8_e4m3fn>(bytes);
    case at::kFloat8_e5m2fnuz:
      return nanAt<at::Float8_e5m2fnuz>(bytes);
    case at::kFloat8_e4m3fnuz:
      return nanAt<at::Float8_e4m3fnuz>(bytes);
    default:
      return false;
  }
}

bool sameElement(at::ScalarType dtype, const char* a, const char* b) {
  if (at::isComplexType(dtype)) {
    const at::ScalarType part = c10::toRealValueType(dtype);
    const size_t size = c10::elementSize(part);
    return sameElement(part, a, b) && sameElement(part, a + size, b + size);
  }
  return std::memcmp(a, b, c10::elementSize(dtype)) == 0 || (isNan(dtype, a) && isNan(dtype, b));
}

bool sameStrided(const at::Tensor& a, const at::Tensor& b) {
  if (a.device().is_meta()) {
    return true;
  }
  const at::Tensor plain_a = plainData(a);
  const at::Tensor plain_b = plainData(b);
  if (plain_a.strides() != plain_b.strides()) {
    return false;
  }
  const size_t span = storageSpan(plain_a.sizes(), plain_a.strides(), a.element_size()).value_or(0);
  const auto reachable = reachableElements(plain_a.sizes(), plain_a.strides(), span);
  const char* bytes_a = static_cast<const char*>(plain_a.const_data_ptr());
  const char* bytes_b = static_cast<const char*>(plain_b.const_data_ptr());
  const size_t size = a.element_size();
  for (size_t i = 0; i < span; ++i) {
    if (reachable[i] != 0 && !sameElement(a.scalar_type(), bytes_a + i * size, bytes_b + i * size)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<size_t> storageSpan(at::IntArrayRef sizes, at::IntArrayRef strides, size_t element_size) {
  const uint64_t limit =
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / std::max<size_t>(1, element_size);
  uint64_t span = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      return 0;
    }
    const uint64_t steps = static_cast<uint64_t>(sizes[i]) - 1;
    const uint64_t stride = static_cast<uint64_t>(strides[i]);
    if (steps != 0 && stride > (limit - span) / steps) {
      return std::nullopt;
    }
    span += steps * stride;
  }
  return span;
}

std::vector<uint8_t> reachableElements(at::IntArrayRef sizes, at::IntArrayRef strides, size_t span) {
  std::vector<uint8_t> reachable(span, 0);
  if (span == 0) {
    return reachable;
  }
  reachable[0] = 1;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (strides[dim] == 0) {
      continue;
    }
    // What `covered` steps reach, shifted by `step` more, is what `covered + step` steps reach: doubling.
    int64_t covered = 1;
    while (covered < sizes[dim]) {
      const int64_t step = std::min(covered, sizes[dim] - covered);
      const size_t shift = static_cast<size_t>(step * strides[dim]);
      for (size_t i = span; i-- > shift;) {
        reachable[i] |= reachable[i - shift];
      }
      covered += step;
    }
  }
  return reachable;
}

at::Tensor plainData(const at::Tensor& tensor) { return tensor.detach().cpu().resolve_conj().resolve_neg(); }

bool sameTensor(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) {
    return a.defined() == b.defined();
  }
  if (a.is_same(b)) {
    return true;
  }
  if (a.scalar_type() != b.scalar_type() || a.device() != b.device() || a.layout() != b.layout() ||
      a.sizes() != b.sizes() || a.requires_grad() != b.requires_grad()) {
    return false;
  }
  if (a.layout() != at::kStrided || a.is_quantized()) {
    try {
      return a.is_quantized() ? a.equal(b) : sameTensor(a.detach().to_dense(), b.detach().to_dense());
    } catch (const std::exception&) {
      return false;  // a layout that torch cannot look into: equal only to itself
    }
  }
  return a.strides() == b.strides() && sameStrided(a, b);
}

}  // namespace faultline
