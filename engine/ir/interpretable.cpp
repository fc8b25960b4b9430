#include "engine/ir/interpretable.h"

#include "engine/ir/walk.h"

namespace faultline {
namespace {

using torch::jit::Graph;
using torch::jit::Node;

bool runsAtItsUse(const Node* node) {
  return !node->blocks().empty() && node->outputs().size() == 1 && node->output()->uses().size() == 1;
}

}  // namespace

std::shared_ptr<Graph> interpretable(const std::shared_ptr<Graph>& graph) {
  bool any = false;
  forEachNode(graph->block(), [&](const Node* node) { any = any || runsAtItsUse(node); });
  if (!any) return graph;
  auto copy = graph->copy();
  std::vector<Node*> nodes;
  forEachNode(copy->block(), [&](Node* node) {
    if (runsAtItsUse(node)) nodes.push_back(node);
  });
  for (Node* node : nodes) copy->createTuple({node->output()})->insertAfter(node);
  return copy;
}

}  // namespace faultline
