// Nodes of a block in graph order: a node, then the nodes of its blocks, then the next node. Subgraphs are
// not entered.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include <vector>

namespace faultline {

// Calls visit(node) for each. The visitor may change the node, but not add, move or destroy nodes.
// `Block` and `Node` are both const or both not. No recursion: depth costs heap, not stack.
template <class Block, class Visit>
void forEachNode(Block* block, Visit visit) {
  using Range = decltype(block->nodes());
  using Iterator = decltype(std::declval<Range>().begin());
  std::vector<std::pair<Iterator, Iterator>> open;
  open.emplace_back(block->nodes().begin(), block->nodes().end());
  while (!open.empty()) {
    auto& [next, end] = open.back();
    if (next == end) {
      open.pop_back();
      continue;
    }
    auto* node = *next;
    ++next;
    visit(node);
    auto blocks = node->blocks();
    for (size_t i = blocks.size(); i > 0; --i) {
      open.emplace_back(blocks[i - 1]->nodes().begin(), blocks[i - 1]->nodes().end());
    }
  }
}

}  // namespace faultline
