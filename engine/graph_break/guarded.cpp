#include "engine/graph_break/guarded.h"

namespace faultline {

using torch::jit::Node;
namespace prim = torch::jit::prim;

bool isGuarded(const Node& node) {
  if (node.kind() != prim::If) return false;
  const Node* check = node.input()->node();
  return (check->kind() == prim::TypeCheck || check->kind() == prim::RequiresGradCheck) &&
         node.input() == check->outputs().back();
}

const Node* guardedPiece(const Node& node) {
  if (!isGuarded(node)) return nullptr;
  const auto nodes = node.blocks()[0]->nodes();
  if (nodes.begin() == nodes.end() || std::next(nodes.begin()) != nodes.end()) return nullptr;
  const Node* piece = *nodes.begin();
  const bool named =
      piece->hasAttribute(torch::jit::attr::Subgraph) && piece->hasAttribute(torch::jit::attr::name);
  return named ? piece : nullptr;
}

void takeFallbacks(torch::jit::Block& block) {
  for (auto it = block.nodes().begin(); it != block.nodes().end();) {
    Node* node = *it++;
    for (torch::jit::Block* inner : node->blocks()) {
      takeFallbacks(*inner);
    }
    if (!isGuarded(*node)) continue;
    torch::jit::Block* fallback = node->blocks()[1];
    while (fallback->nodes().begin() != fallback->nodes().end()) {
      (*fallback->nodes().begin())->moveBefore(node);
    }
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      node->output(i)->replaceAllUsesWith(fallback->outputs()[i]);
    }
    Node* check = node->input()->node();
    node->destroy();
    for (size_t i = 0; i < check->inputs().size(); ++i) {
      check->output(i)->replaceAllUsesWith(check->input(i));
    }
    if (!check->hasUses()) check->destroy();
  }
}

}  // namespace faultline
