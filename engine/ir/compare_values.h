// Equality of what nodes carry besides their inputs.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

// Equal types, all details of tensor types included. Functions are equal here: the constants that hold them
// are told apart by their attribute `name`, which is all that text keeps of them.
bool sameType(const c10::TypePtr& a, const c10::TypePtr& b);

// Same type and content, containers element by element; doubles by their bits, NaN equals NaN. What has no
// content that can be looked at (objects, generators, futures) is equal only to itself.
bool sameIValue(const c10::IValue& a, const c10::IValue& b);

// The attribute `name`, which both nodes have. Graphs are not compared: they count as equal if there are as
// many.
bool sameAttribute(const torch::jit::Node& a, const torch::jit::Node& b, c10::Symbol name);

}  // namespace faultline
