// How messages name a node.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include <string>

namespace faultline {

// "%a, %b = aten::max(%x)", without types and attributes; long lists are cut. "the return" for a return node.
std::string describeNode(const torch::jit::Node& node);

// `text` cut to what fits into one line of a message.
std::string shortened(std::string text);

}  // namespace faultline
