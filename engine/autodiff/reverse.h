// Reverse-mode differentiation of a straight line of ops: what libtorch's `differentiate` does, with formulas
// of ours beside its own, and with paths for second gradients that it loses.
//
// libtorch puts a formula's own forward in the place of an op and forgets that the gradient it holds for the
// op's result is that of the new value: a later op that keeps the value gets no path back to it. Here
// forwards are put in place before gradients are looked for.
#pragma once
#include <torch/csrc/jit/runtime/autodiff.h>

namespace faultline {

// Whether a node can be differentiated: by a formula of ours or of libtorch's.
bool hasFormula(const torch::jit::Node* node);

// As torch::jit::differentiate: the form of the result, gradients in prim::GradOf blocks, and its input, a
// graph whose tensor types say what requires grad. Changes `graph`, which becomes the result's `f`.
// Temporaries that the backward needs follow the graph's outputs in the order of their nodes. Throws where a
// formula is missing.
torch::jit::Gradient reverse(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace faultline
