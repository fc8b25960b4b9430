#include <algorithm>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>

#include "faultline/ir.h"
#include "generators/mutate/draft.h"
#include "generators/mutate/mutate.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

namespace {

c10::Symbol mark() {
  static const c10::Symbol symbol = c10::Symbol::attr("faultline_planned_as");
  return symbol;
}

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool cutsByName(const Case& c) { return c.plan.breaks.rfind("after ", 0) == 0; }

std::shared_ptr<torch::jit::Graph> subgraphOf(const Node* node) {
  bool has =
      node->hasAttribute(attr::Subgraph) && node->kindOf(attr::Subgraph) == torch::jit::AttributeKind::g;
  return has ? node->g(attr::Subgraph) : nullptr;
}

void forgetMarks(Block* block) {
  for (Node* node : block->nodes()) {
    if (node->hasAttribute(mark())) node->removeAttribute(mark());
    for (Block* inner : node->blocks()) forgetMarks(inner);
    if (auto subgraph = subgraphOf(node)) forgetMarks(subgraph->block());
  }
}

// Shapes that stood in types were true before the edit.
void forgetShapes(Block* block, bool inputs) {
  auto forget = [](Value* value) { value->setType(c10::unshapedType(value->type())); };
  if (inputs) std::for_each(block->inputs().begin(), block->inputs().end(), forget);
  for (Node* node : block->nodes()) {
    for (Value* output : node->outputs()) forget(output);
    for (Block* inner : node->blocks()) forgetShapes(inner, true);
    if (auto subgraph = subgraphOf(node)) forgetShapes(subgraph->block(), true);
  }
}

void dropIdleConstants(Block* block) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it;
    ++it;
    for (Block* inner : node->blocks()) dropIdleConstants(inner);
    if (node->kind() == prim::Constant && !node->hasUses()) node->destroy();
  }
}

void repairInputs(Case& c) {
  for (size_t i = 0; i < c.graph->inputs().size(); ++i) {
    Value* input = c.graph->inputs()[i];
    bool fits = std::all_of(c.runs.begin(), c.runs.end(), [&](const CaseRun& run) {
      std::vector<InputSpec> earlier(run.inputs.begin(), run.inputs.begin() + static_cast<std::ptrdiff_t>(i));
      return whyNotFits(run.inputs[i], *input->type(), earlier).empty();
    });
    if (!fits) input->setType(c10::unshapedType(input->type()));
  }
}

void repairPlan(Case& c) {
  std::vector<HookSpec>& hooks = c.plan.hooks;
  hooks.erase(
      std::remove_if(hooks.begin(), hooks.end(), [&](const HookSpec& hook) { return !mayBeHooked(c, hook); }),
      hooks.end());
  if (hooks.size() > mutate_limits::max_hooks) hooks.resize(mutate_limits::max_hooks);
  for (CaseRun& run : c.runs) {
    std::vector<BackwardSpec>& phases = run.backwards;
    phases.erase(std::remove_if(phases.begin(), phases.end(),
                                [&](const BackwardSpec& phase) {
                                  if (phase.kind != BackwardSpec::Kind::Output) return false;
                                  return phase.output >= c.graph->outputs().size() ||
                                         c.graph->outputs()[phase.output]->type()->kind() !=
                                             c10::TypeKind::TensorType;
                                }),
                 phases.end());
  }
}

}  // namespace

bool mayBeHooked(const Case& c, const HookSpec& hook) {
  if (!hook.seam.empty()) return true;
  return std::all_of(c.runs.begin(), c.runs.end(), [&](const CaseRun& run) {
    if (hook.input >= run.inputs.size()) return false;
    const InputSpec& spec = run.inputs[hook.input];
    bool kind = hook.kind == HookKind::PostAccumulate ? spec.leaf
                : hook.kind == HookKind::RetainGrad   ? !spec.leaf
                                                      : true;
    return spec.kind == InputSpec::Kind::Tensor && spec.requires_grad && kind;
  });
}

std::vector<Node*> allNodes(torch::jit::Graph& graph) {
  std::vector<Node*> nodes;
  auto walk = [&](auto& self, Block* block) -> void {
    for (Node* node : block->nodes()) {
      nodes.push_back(node);
      for (Block* inner : node->blocks()) self(self, inner);
    }
  };
  walk(walk, graph.block());
  return nodes;
}

bool holdsSubgraph(torch::jit::Graph& graph) {
  std::vector<Node*> nodes = allNodes(graph);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* node) { return subgraphOf(node) != nullptr; });
}

void markPlannedNodes(Case& c) {
  NodeNames names(*c.graph);
  auto markAs = [&](const std::string& name) {
    if (Node* node = names.find(name)) node->s_(mark(), name);
  };
  for (const HookSpec& hook : c.plan.hooks) {
    if (!hook.seam.empty()) markAs(hook.seam);
  }
  if (!cutsByName(c)) return;
  std::vector<std::string> words = wordsOf(c.plan.breaks);
  for (size_t i = 1; i < words.size(); ++i) markAs(words[i]);
}

void renamePlannedNodes(Case& c) {
  NodeNames names(*c.graph);
  std::unordered_map<std::string, std::string> now;
  // Names count nodes outside of subgraphs: with those in the graph they would soon mean others.
  if (!holdsSubgraph(*c.graph)) {
    for (Node* node : allNodes(*c.graph)) {
      if (node->hasAttribute(mark())) now.emplace(node->s(mark()), names.of(node));
    }
  }
  forgetMarks(c.graph->block());
  std::vector<HookSpec> hooks;
  for (HookSpec hook : c.plan.hooks) {
    if (!hook.seam.empty()) {
      if (now.count(hook.seam) == 0) continue;
      hook.seam = now.at(hook.seam);
    }
    hooks.push_back(hook);
  }
  c.plan.hooks = std::move(hooks);
  if (!cutsByName(c)) return;
  std::string breaks;
  std::vector<std::string> words = wordsOf(c.plan.breaks);
  for (size_t i = 1; i < words.size(); ++i) {
    if (now.count(words[i]) != 0) breaks += " " + now.at(words[i]);
  }
  c.plan.breaks = breaks.empty() ? fmt::format("every {}", words.size() + 1) : "after" + breaks;
}

void repairCase(Case& c) {
  dropIdleConstants(c.graph->block());
  forgetShapes(c.graph->block(), /*inputs=*/false);
  repairInputs(c);
  repairPlan(c);
}

}  // namespace faultline
