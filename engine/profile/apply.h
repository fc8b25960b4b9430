// applyProfile with its two halves apart: what is known of the operands of ops, and what is made of it.
#pragma once
#include "engine/graph_break/compile.h"
#include "faultline/apply_profile.h"

namespace faultline::profile {

// requires_grad of the operands of each op, where answers say, for the graph as compile() sees it: guarded
// code as written, subgraphs and calls inlined, profile nodes gone.
KnownGradients knownGradients(const torch::jit::Graph& graph);

}  // namespace faultline::profile
