// Numbers of two tensors with equal dtype and sizes.
#pragma once
#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "oracles/compare/tolerance.h"

namespace faultline {

struct ValueComparison {
  bool equal = true;
  // A number on one side, NaN or an infinity on the other (or another one): no tolerance and no other
  // precision excuse it.
  bool other_class = false;
  uint64_t counted = 0;  // elements where the reference is finite
  // The largest, too far or not, relative to the number expected; infinite where one is not finite or numbers
  // are to be equal and are not.
  double distance = 0;
  std::string message;  // of the first difference of the gravest class: "[3]: expected 1, got 2"
};

// NaN equals NaN at the same place, an infinity needs its sign, +0 equals -0.
ValueComparison compareValues(const at::Tensor& expected, const at::Tensor& got, const Tolerance& tolerance);

}  // namespace faultline
