// Descriptions of things that are there already (internal to generators/case).
#pragma once
#include <ATen/core/Tensor.h>

#include "generators/case/spec.h"

namespace faultline {

// Contents included: as `values` when `readable` and they are exact so, else as `data`. Offset and sharing of
// storage with other tensors are not kept.
Result<InputSpec> specOfTensor(const at::Tensor& tensor, bool readable);

// Of numbers, bools, strings, None, and lists and tuples of them; nullopt: something else.
std::optional<InputSpec> specOfValue(const c10::IValue& value);

// nullopt: dtype or a size is not known.
std::optional<InputSpec> specOfType(const c10::Type& type);

}  // namespace faultline
