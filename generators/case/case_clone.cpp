#include "generators/case/case.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;
using torch::jit::Block;
using torch::jit::Node;

at::Tensor ownCopy(const at::Tensor& tensor) { return tensor.defined() ? tensor.detach().clone() : tensor; }

// Graph::copy shares the tensors of constants, and a program may write into them.
void ownConstants(Block* block) {
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) ownConstants(inner);
    for (c10::Symbol name : node->attributeNames()) {
      switch (node->kindOf(name)) {
        case AttributeKind::t:
          node->t_(name, ownCopy(node->t(name)));
          break;
        case AttributeKind::ts: {
          std::vector<at::Tensor> tensors = node->ts(name);
          for (at::Tensor& tensor : tensors) tensor = ownCopy(tensor);
          node->ts_(name, std::move(tensors));
          break;
        }
        case AttributeKind::ival:
          node->ival_(name, node->ival(name).deepcopy());
          break;
        case AttributeKind::g:
          ownConstants(node->g(name)->block());
          break;
        case AttributeKind::gs:
          for (const auto& graph : node->gs(name)) ownConstants(graph->block());
          break;
        default:
          break;
      }
    }
  }
}

}  // namespace

std::shared_ptr<torch::jit::Graph> cloneGraph(const torch::jit::Graph& graph) {
  std::shared_ptr<torch::jit::Graph> clone = const_cast<torch::jit::Graph&>(graph).copy();
  ownConstants(clone->block());
  return clone;
}

Case cloneCase(const Case& c) {
  Case clone = c;
  if (c.graph != nullptr) clone.graph = cloneGraph(*c.graph);
  return clone;
}

}  // namespace faultline
