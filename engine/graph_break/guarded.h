// Compiled code behind a check, as libtorch's executor and the stitched graph have it: an If of the last
// result of a prim::TypeCheck or prim::RequiresGradCheck, with the compiled form in its first block and in
// the second the ops as written.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

bool isGuarded(const torch::jit::Node& node);
// The node that the first block of a guarded If consists of, where it is a named subgraph; else nullptr.
const torch::jit::Node* guardedPiece(const torch::jit::Node& node);
// Puts the ops as written in place of each guarded If, in nested blocks too.
void takeFallbacks(torch::jit::Block& block);

}  // namespace faultline
