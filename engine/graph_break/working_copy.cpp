#include "engine/graph_break/working_copy.h"

#include <map>
#include <tuple>

#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/shape_analysis.h>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/gradient.h"
#include "engine/graph_break/guarded.h"
#include "engine/ir/walk.h"
#include "engine/support/check.h"
#include "faultline/profile.h"

namespace faultline {

namespace {

bool holdsProfileNodes(const torch::jit::Block* block) {
  for (const Node* node : block->nodes()) {
    if (node->kind() == torch::jit::prim::profile || node->kind() == torch::jit::prim::profile_ivalue) {
      return true;
    }
    for (const torch::jit::Block* inner : node->blocks()) {
      if (holdsProfileNodes(inner)) {
        return true;
      }
    }
  }
  return false;
}

// Each walk over a large graph costs as much as a look at every node: most graphs need none of these.
struct Needs {
  bool guards = false, inlining = false, profile = false;
  bool any() const { return guards || inlining || profile; }
};

Needs needsOf(const Graph& graph) {
  Needs needs;
  forEachNode(graph.block(), [&](const Node* node) {
    needs.guards = needs.guards || isGuarded(*node);
    needs.inlining = needs.inlining || node->hasAttribute(torch::jit::attr::Subgraph) ||
                     node->kind() == torch::jit::prim::CallFunction ||
                     node->kind() == torch::jit::prim::CallMethod;
    needs.profile = needs.profile || node->kind() == torch::jit::prim::profile ||
                    node->kind() == torch::jit::prim::profile_ivalue;
  });
  return needs;
}

std::shared_ptr<Graph> normalised(const Graph& original, bool& profiled) {
  auto graph = copyGraph(original);
  Needs needs = needsOf(original);
  if (needs.guards) {
    takeFallbacks(*graph->block());
  }
  if (needs.inlining) {
    inlineSubgraphs(*graph);
    torch::jit::Inline(*graph);
    needs.profile = true;  // what was inlined may hold some
  }
  if (needs.profile) {
    removeProfileNodes(*graph);
  }
  torch::jit::EraseShapeInformation(graph);
  profiled = needs.profile && holdsProfileNodes(graph->block());
  return graph;
}

std::vector<std::string> namesOfInputs(const Graph& graph) {
  std::map<std::string, int> count;
  for (const Value* input : graph.inputs()) {
    ++count[input->hasDebugName() ? input->debugNameBase() : input->debugName()];
  }
  std::vector<std::string> names;
  for (const Value* input : graph.inputs()) {
    std::string base = input->hasDebugName() ? input->debugNameBase() : input->debugName();
    names.push_back(count[base] == 1 ? base : input->debugName());
  }
  return names;
}

}  // namespace

Result<std::shared_ptr<const WorkingCopy>> WorkingCopy::make(const Graph& original) {
  bool profiled = false;
  auto graph = normalised(original, profiled);
  if (profiled) {
    return fail(ErrorKind::Invalid, "the graph has a profile node whose results nothing can replace");
  }
  return std::shared_ptr<const WorkingCopy>(new WorkingCopy(original, std::move(graph)));
}

Result<std::shared_ptr<const WorkingCopy>> WorkingCopy::look(const Graph& original) {
  const Needs needs = needsOf(original);
  if (needs.any()) {
    return make(original);
  }
  // Not owned, and only read.
  std::shared_ptr<Graph> graph(std::shared_ptr<void>(), const_cast<Graph*>(&original));
  return std::shared_ptr<const WorkingCopy>(new WorkingCopy(original, std::move(graph)));
}

WorkingCopy::WorkingCopy(const Graph& original, std::shared_ptr<Graph> normalised)
    : graph(std::move(normalised)), names(*graph), input_names(namesOfInputs(*graph)) {
  for (const Value* input : original.inputs()) {
    input_types.push_back(input->type());
  }
  for (Node* node : graph->nodes()) {
    nodes.push_back(node);
  }
  index.reserve(2 * nodes.size());
  constant.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    index.emplace(nodes[i], i);
    constant.push_back(isConstantLike(nodes[i]));
  }
  // Names come in the order of all nodes, those in blocks too.
  size_t at = 0;
  name_index_.reserve(nodes.size());
  for (const Node* node : nodes) {
    name_index_.push_back(at++);
    for (const torch::jit::Block* block : node->blocks()) {
      forEachNode(block, [&](const Node*) { ++at; });
    }
  }
}

size_t WorkingCopy::topLevel(const Node* node) const {
  while (node->owningBlock() != graph->block()) {
    node = node->owningBlock()->owningNode();
  }
  auto it = index.find(node);
  FAULTLINE_CHECK(it != index.end(), "a node of this graph");
  return it->second;
}

bool WorkingCopy::isGraphInput(const Value* value) const { return value->node() == graph->param_node(); }

std::string WorkingCopy::valueName(const Value* value) const {
  if (isGraphInput(value)) {
    return input_names[value->offset()];
  }
  const auto top = index.find(value->node());
  const std::string& name = top == index.end() ? names.of(value->node()) : nameOf(top->second);
  return value->offset() == 0 ? name : name + "." + std::to_string(value->offset());
}

bool WorkingCopy::before(const Value* a, const Value* b) const {
  auto key = [this](const Value* value) {
    const bool input = isGraphInput(value);
    return std::make_tuple(!input, input ? 0 : topLevel(value->node()), value->offset());
  };
  return key(a) < key(b);
}

}  // namespace faultline
