// Keeps second gradients that `differentiate` loses.
//
// libtorch puts a formula's own forward in the place of an op and forgets that the gradient it holds for the
// op's result is that of the new value: a later op that keeps the value gets no path back to it. Only where
// common subexpressions happen to be merged does the path survive. An op without such a formula behind each
// result (a shield, which does nothing) has a value of its own that is not replaced.
#pragma once
#include "engine/autodiff/gradient.h"

namespace faultline {

// Whether a captured temporary of `gradient` that a gradient can come back to has no path for it.
bool losesGradients(const PieceGradient& gradient);

// Changes `graph`, which is to be differentiated.
void shieldResults(torch::jit::Graph& graph);
// Takes shields out of what `differentiate` made of it.
void dropShields(torch::jit::Gradient& gradient);
// The same once the tables are there: a result and its shield are one value, captured once.
void mergeCaptures(PieceGradient& gradient);

}  // namespace faultline
