// A fault of libtorch's interpreter, kept out of what we run.
//
// A node with blocks whose one result has one use is executed where it is used, among the user's other
// operands. When an earlier operand is also read inside the blocks, the interpreter counts the read inside as
// the last one and moves the value out: the next iteration finds None ("Expected Tensor but got None").
#pragma once
#include <memory>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

// The graph itself, or, where it has such a node, a copy in which the results of such nodes have a second use
// and so are computed in their place. Means the same.
std::shared_ptr<torch::jit::Graph> interpretable(const std::shared_ptr<torch::jit::Graph>& graph);

}  // namespace faultline
