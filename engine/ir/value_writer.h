// Values of attributes as text, for the writer.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include <string>

namespace faultline {

// tensor(Float(2, 3), [0., …]): dtype, sizes, strides where they are not contiguous, requires_grad, device,
// all bits. Layouts and dtypes that the reader has no form for come out as tensor(unsupported …), which it
// refuses.
std::string tensorText(const at::Tensor& tensor);

// The value where a value of type `expected` stands; annotated where the type does not say all.
std::string valueText(const c10::IValue& value, const c10::Type& expected);

// "value=1", "value:fs=[]": name, kind where the reader would take another one, value. Not for graphs.
std::string attributeText(const torch::jit::Node& node, c10::Symbol name);

// "profiled_type" or "mine:g": the part before the '='.
std::string attributeName(c10::Symbol name, torch::jit::AttributeKind kind, bool needs_kind);

}  // namespace faultline
