#include "engine/graph_break/working_copy.h"

#include <map>

#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/shape_analysis.h>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/gradient.h"
#include "engine/graph_break/guarded.h"
#include "engine/ir/callers.h"
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
  bool guards = false, inlining = false, profile = false, callers = false;
  bool any() const { return guards || inlining || profile; }
};

Needs needsOf(const Graph& graph) {
  Needs needs;
  forEachNode(graph.block(), [&](const Node* node) {
    needs.guards = needs.guards || isGuarded(*node);
    needs.inlining = needs.inlining || node->hasAttribute(torch::jit::attr::Subgraph) ||
                     node->kind() == torch::jit::prim::CallFunction ||
                     node->kind() == torch::jit::prim::CallMethod;
    needs.callers = needs.callers || node->callstack();
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
    needs.profile = needs.callers = true;  // what was inlined may hold some
  }
  if (needs.callers) {
    detachFromCallers(*graph);
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

Result<std::shared_ptr<const WorkingCopy>> WorkingCopy::make(const Graph& original,
                                                             const std::vector<std::string>& opened) {
  bool profiled = false;
  auto graph = normalised(original, profiled);
  if (profiled) {
    return fail(ErrorKind::Invalid, "the graph has a profile node whose results nothing can replace");
  }
  return finish(std::shared_ptr<WorkingCopy>(new WorkingCopy(original, std::move(graph))), opened);
}

Result<std::shared_ptr<const WorkingCopy>> WorkingCopy::look(const Graph& original,
                                                             const std::vector<std::string>& opened) {
  const Needs needs = needsOf(original);
  if (needs.any()) {
    return make(original, opened);
  }
  // Not owned, and only read.
  std::shared_ptr<Graph> graph(std::shared_ptr<void>(), const_cast<Graph*>(&original));
  return finish(std::shared_ptr<WorkingCopy>(new WorkingCopy(original, std::move(graph))), opened);
}

WorkingCopy::WorkingCopy(const Graph& original, std::shared_ptr<Graph> normalised)
    : graph(std::move(normalised)), names(*graph), input_names(namesOfInputs(*graph)) {
  for (const Value* input : original.inputs()) {
    input_types.push_back(input->type());
  }
}

Result<std::shared_ptr<const WorkingCopy>> WorkingCopy::finish(std::shared_ptr<WorkingCopy> copy,
                                                               const std::vector<std::string>& opened) {
  std::unordered_set<const Node*> to_open;
  for (const std::string& name : opened) {
    const Node* node = copy->names.find(name);
    if (!node || (node->kind() != torch::jit::prim::If && node->kind() != torch::jit::prim::Loop)) {
      return fail(ErrorKind::Invalid, "no If or Loop is named '" + name + "'");
    }
    to_open.insert(node);
  }
  for (const Node* node : to_open) {
    if (node->owningBlock() != copy->graph->block() && !to_open.count(node->owningBlock()->owningNode())) {
      return fail(ErrorKind::Invalid, copy->names.of(node) + " stands in a block that stays whole");
    }
  }
  size_t count = 0, at = 0;
  for (const Node* node : copy->graph->nodes()) {
    (void)node;
    ++count;
  }
  copy->nodes.reserve(count);
  copy->index.reserve(2 * count);
  copy->addNodes(copy->graph->block(), 0, to_open, at);
  return std::shared_ptr<const WorkingCopy>(std::move(copy));
}

// `at`: names come in the order of all nodes, those in blocks too.
void WorkingCopy::addNodes(torch::jit::Block* block, size_t depth,
                           const std::unordered_set<const Node*>& to_open, size_t& at) {
  for (Node* node : block->nodes()) {
    const size_t own = at++;
    const bool open = !to_open.empty() && to_open.count(node) > 0;
    for (torch::jit::Block* inner : node->blocks()) {
      if (open) {
        blocks_.emplace(inner->param_node(), OpenedBlock{nodes.size(), depth + 1});
        addNodes(inner, depth + 1, to_open, at);
      } else {
        forEachNode(inner, [&](const Node*) { ++at; });
      }
    }
    index.emplace(node, nodes.size());
    nodes.push_back(node);
    constant.push_back(isConstantLike(node));
    opened.push_back(open);
    name_index_.push_back(own);
  }
}

size_t WorkingCopy::topLevel(const Node* node) const {
  while (node->owningBlock() != graph->block()) {
    if (opensAny()) {
      const auto it = index.find(node);
      if (it != index.end()) {
        return it->second;
      }
    }
    node = node->owningBlock()->owningNode();
  }
  auto it = index.find(node);
  FAULTLINE_CHECK(it != index.end(), "a node of this graph");
  return it->second;
}

bool WorkingCopy::isGraphInput(const Value* value) const { return value->node() == graph->param_node(); }

bool WorkingCopy::isBlockInput(const Value* value) const {
  return opensAny() && blocks_.count(value->node()) > 0;
}

size_t WorkingCopy::beginOf(const torch::jit::Block* opened_block) const {
  return blocks_.at(const_cast<torch::jit::Block*>(opened_block)->param_node()).begin;
}

std::string WorkingCopy::blockName(const torch::jit::Block* block) const {
  std::string name;
  for (; block != graph->block(); block = block->owningNode()->owningBlock()) {
    const Node* owner = block->owningNode();
    const char* which = owner->kind() == torch::jit::prim::Loop ? "body"
                        : owner->blocks()[0] == block           ? "then"
                                                                : "else";
    name += (name.empty() ? "" : " in ") + std::string(which) + " of " + names.of(owner);
  }
  return name;
}

std::string WorkingCopy::valueName(const Value* value) const {
  if (isGraphInput(value)) {
    return input_names[value->offset()];
  }
  if (isBlockInput(value)) {
    const std::string& loop = names.of(value->node()->owningBlock()->owningNode());
    return value->offset() == 0 ? loop + ".i" : loop + ".in" + std::to_string(value->offset() - 1);
  }
  const auto top = index.find(value->node());
  const std::string& name = top == index.end() ? names.of(value->node()) : nameOf(top->second);
  return value->offset() == 0 ? name : name + "." + std::to_string(value->offset());
}

WorkingCopy::Place WorkingCopy::placeOf(const Value* value) const {
  if (isGraphInput(value)) {
    return {0, 0, value->offset()};
  }
  if (isBlockInput(value)) {
    const OpenedBlock& block = blocks_.at(value->node());
    return {2 * block.begin + 1, block.depth, value->offset()};
  }
  return {2 * topLevel(value->node()) + 2, 0, value->offset()};
}

}  // namespace faultline
