// Generated cases for the tests of this folder.
#pragma once
#include <functional>

#include "generators/generate/generate.h"

namespace faultline {

inline Case caseOf(uint64_t seed, uint64_t index, const GenerateOptions& options = {}) {
  uint64_t own = caseSeed(seed, index);
  Choices choices = Choices::fromSeed(own);
  return generateCase(choices, own, options);
}

// All nodes, those of blocks and subgraphs included.
inline void forEachNode(const torch::jit::Block* block,
                        const std::function<void(const torch::jit::Node&)>& visit) {
  for (const torch::jit::Node* node : block->nodes()) {
    visit(*node);
    for (const torch::jit::Block* inner : node->blocks()) forEachNode(inner, visit);
    if (node->hasAttribute(torch::jit::attr::Subgraph)) {
      forEachNode(node->g(torch::jit::attr::Subgraph)->block(), visit);
    }
  }
}

inline size_t countNodes(const Case& c) {
  size_t count = 0;
  forEachNode(c.graph->block(), [&](const torch::jit::Node& node) {
    bool plumbing = node.kind() == torch::jit::prim::Constant || node.kind() == torch::jit::prim::profile;
    if (!plumbing) ++count;
  });
  return count;
}

}  // namespace faultline
