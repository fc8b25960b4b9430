// One differentiated piece: libtorch's `differentiate` on a copy, cleaned so that the interpreter can run it,
// with the tables the run-time needs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/autodiff.h>

#include "faultline/error.h"

namespace faultline {

// libtorch's Graph::copy for a graph that is only read (theirs lacks the const).
std::shared_ptr<torch::jit::Graph> copyGraph(const torch::jit::Graph& graph);

// Which inputs of a graph require grad, by position.
using InputMask = std::vector<bool>;
inline bool anyOf(const InputMask& mask) { return std::find(mask.begin(), mask.end(), true) != mask.end(); }

struct PieceGradient {
  std::shared_ptr<torch::jit::Graph>
      forward;  // outputs: the piece's own, then temporaries kept for the backward
  std::shared_ptr<torch::jit::Graph> backward;  // inputs: gradients, captured inputs, captured outputs; the
                                                // gradients, as `gradient_inputs` has them
  size_t real_outputs = 0;
  // As torch::jit::Gradient: positions in the forward's outputs or inputs.
  std::vector<size_t> vjp_outputs;  // input k of `backward` is the gradient of this output
  std::vector<size_t> captured_inputs;
  std::vector<size_t> captured_outputs;
  // Of captured inputs, then captured outputs: the backward only asks for sizes, dtype or presence. Eager
  // would not have kept such a tensor, nor minded a write to it.
  std::vector<bool> metadata_only;
  std::vector<size_t> gradient_inputs;  // result k of `backward` is the gradient of this input
  // reaching[o]: the inputs that require grad and reach output o of the forward (its temporaries too).
  std::vector<InputMask> reaching;
};

// Inputs from which a gradient can come to each output, given which inputs require grad. Reads the graph
// only.
std::vector<InputMask> reachingInputs(const torch::jit::Graph& graph, const InputMask& requires_grad);

// Copies `graph` with types that say no more than what requires grad: shapes may differ on the next run.
std::shared_ptr<torch::jit::Graph> copyWithRequiresGrad(const torch::jit::Graph& graph,
                                                        const InputMask& requires_grad);

// The gradient as libtorch leaves it, GradOf blocks and all: what a stock prim::DifferentiableGraph node
// holds.
Result<torch::jit::Gradient> rawGradient(const torch::jit::Graph& graph, const InputMask& requires_grad);

// Does not change `graph`. Refuses what autodiff throws on.
Result<PieceGradient> differentiatePiece(const torch::jit::Graph& graph, const InputMask& requires_grad);

}  // namespace faultline
