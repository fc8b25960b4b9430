// Moves stretches of differentiable ops into prim::DifferentiableGraph nodes, as libtorch's autodiff pass
// would, but at places of the generator's choice.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include "generators/choices/choices.h"

namespace faultline {

// Returns how many nodes were made. What the graph computes stays the same once they are inlined.
size_t wrapSubgraphs(torch::jit::Graph& graph, Choices& choices);

}  // namespace faultline
