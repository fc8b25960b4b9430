// The bytes behind a tensor constant: which elements of its storage it can reach, and whether two constants
// are one.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace faultline {

// Elements of storage from the first to the last one reachable; 0 for an empty tensor.
// nullopt: more than a size_t of bytes of `element_size` each can be.
std::optional<size_t> storageSpan(at::IntArrayRef sizes, at::IntArrayRef strides, size_t element_size);

// One byte per element of the span: 1 if some index reaches it. Cost grows with the span, not with the number
// of elements, so expanded and overlapping tensors are cheap.
std::vector<uint8_t> reachableElements(at::IntArrayRef sizes, at::IntArrayRef strides, size_t span);

// The same values strided on the CPU, without conjugate or negative bit. Strides are kept where torch keeps
// them: take them from the result.
at::Tensor plainData(const at::Tensor& tensor);

// Same dtype, device, layout, sizes, strides, requires_grad and bits; NaN equals NaN, -0 differs from 0.
bool sameTensor(const at::Tensor& a, const at::Tensor& b);

}  // namespace faultline
