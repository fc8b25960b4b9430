#include "generators/generate/subgraphs.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "generators/ops/op_row.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

using Stretch = std::vector<Node*>;

bool mayBeInside(const Node* node) {
  const torch::jit::Operator* op = node->maybeOperator();
  if (op == nullptr || node->outputs().size() != 1) return false;
  if (node->output()->type()->kind() != c10::TypeKind::TensorType) return false;
  const OpRow* row = findOpRowOfSchema(c10::toString(op->schema().operator_name()));
  return row != nullptr && row->autodiff && !row->mutates;
}

// Longest runs of neighbours that may be inside, in all blocks.
void collectStretches(Block* block, std::vector<Stretch>& into) {
  Stretch open;
  auto end = [&] {
    if (open.size() >= 2) into.push_back(open);
    open.clear();
  };
  for (Node* node : block->nodes()) {
    if (node->kind() == prim::Constant) continue;
    if (mayBeInside(node)) {
      open.push_back(node);
      continue;
    }
    end();
    for (Block* inner : node->blocks()) collectStretches(inner, into);
  }
  end();
}

bool usedOutside(const Value* value, const std::unordered_set<const Node*>& inside) {
  return std::any_of(value->uses().begin(), value->uses().end(),
                     [&](const torch::jit::Use& use) { return inside.count(use.user) == 0; });
}

bool wrap(Graph& graph, const Stretch& stretch) {
  std::unordered_set<const Node*> inside(stretch.begin(), stretch.end());
  std::vector<Value*> results;
  for (Node* node : stretch) {
    if (usedOutside(node->output(), inside)) results.push_back(node->output());
  }
  if (results.empty()) return false;

  auto subgraph = std::make_shared<Graph>();
  std::unordered_map<Value*, Value*> inner;
  std::vector<Value*> inputs;
  auto bring = [&](Value* outer) {
    if (inner.count(outer) != 0) return;
    if (outer->node()->kind() == prim::Constant) {
      Node* constant = subgraph->createClone(outer->node(), [](Value* value) { return value; });
      inner[outer] = subgraph->appendNode(constant)->output();
      return;
    }
    inner[outer] = subgraph->addInput()->setType(outer->type());
    inputs.push_back(outer);
  };
  for (Node* node : stretch) {
    for (Value* input : node->inputs()) bring(input);
    Node* clone = subgraph->createClone(node, [&](Value* value) { return inner.at(value); });
    inner[node->output()] = subgraph->appendNode(clone)->output();
  }
  for (Value* result : results) subgraph->registerOutput(inner.at(result));

  Node* wrapped = graph.create(prim::DifferentiableGraph, inputs, results.size());
  wrapped->g_(torch::jit::attr::Subgraph, subgraph);
  wrapped->insertBefore(stretch.front());
  for (size_t i = 0; i < results.size(); ++i) {
    wrapped->output(i)->setType(results[i]->type());
    results[i]->replaceAllUsesWith(wrapped->output(i));
  }
  for (auto node = stretch.rbegin(); node != stretch.rend(); ++node) (*node)->destroy();
  return true;
}

}  // namespace

size_t wrapSubgraphs(Graph& graph, Choices& choices) {
  Choices::Span span(choices, "subgraphs");
  std::vector<Stretch> stretches;
  collectStretches(graph.block(), stretches);
  // The longest first, so that the simplest choice is the one libtorch itself would make.
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const Stretch& a, const Stretch& b) { return a.size() > b.size(); });
  size_t wrapped = 0;
  for (const Stretch& stretch : stretches) {
    if (wrapped > 0 && !choices.flip(50)) continue;
    size_t length = stretch.size() - (choices.flip(40) ? choices.below(stretch.size() - 1) : 0);
    size_t begin = choices.below(stretch.size() - length + 1);
    Stretch part(stretch.begin() + static_cast<std::ptrdiff_t>(begin),
                 stretch.begin() + static_cast<std::ptrdiff_t>(begin + length));
    if (wrap(graph, part)) ++wrapped;
  }
  return wrapped;
}

}  // namespace faultline
