// Specs of the tensors that come from outside.
#pragma once
#include "generators/case/spec.h"
#include "generators/generate/swarm.h"
#include "generators/ops/operand.h"

namespace faultline {

// What one case draws its inputs from.
struct InputStyle {
  std::vector<int64_t> palette;  // sizes
  at::ScalarType dtype = at::kFloat;
};

InputStyle drawInputStyle(Choices& choices, const Swarm& swarm);
// A tensor that meets the wish as far as a spec can.
InputSpec drawTensorSpec(Choices& choices, const Swarm& swarm, const InputStyle& style,
                         const TensorWish& wish);
// How large the elements of such an input can be.
Range rangeOfInput(const InputSpec& spec);

}  // namespace faultline
