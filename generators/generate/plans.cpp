#include "generators/generate/plans.h"

#include <algorithm>

#include <fmt/format.h>

#include "faultline/ir.h"

namespace faultline {

namespace prim = torch::jit::prim;
using torch::jit::Node;

namespace {

bool hasSubgraph(const torch::jit::Block* block) {
  for (const Node* node : block->nodes()) {
    if (node->hasAttribute(torch::jit::attr::Subgraph)) return true;
    for (const auto* inner : node->blocks()) {
      if (hasSubgraph(inner)) return true;
    }
  }
  return false;
}

// Ops behind which a cut can be asked for: names are those of the graph with subgraphs inlined, so there must
// be none.
std::vector<std::string> cutNames(const Case& c) {
  std::vector<std::string> names;
  if (hasSubgraph(c.graph->block())) return names;
  NodeNames all(*c.graph);
  for (const Node* node : c.graph->nodes()) {
    bool plain =
        node->kind() != prim::Constant && node->kind() != prim::profile && node->outputs().size() == 1;
    if (plain && node->output()->type()->kind() == c10::TypeKind::TensorType) names.push_back(all.of(node));
  }
  return names;
}

std::vector<std::string> chooseBreaks(Case& c, Choices& choices) {
  Choices::Span span(choices, "breaks");
  std::vector<std::string> names = cutNames(c);
  if (names.empty() || choices.flip(45)) {
    c.plan.breaks = fmt::format("every {}", choices.between(1, 8));
    return {};
  }
  std::vector<std::string> chosen;
  c.plan.breaks = "after";
  for (int64_t cuts = choices.between(1, 3); cuts > 0; --cuts) {
    const std::string& name = names[choices.below(names.size())];
    if (std::find(chosen.begin(), chosen.end(), name) != chosen.end()) continue;
    chosen.push_back(name);
    c.plan.breaks += " " + name;
  }
  return chosen;
}

bool isLeafOnEveryRun(const Case& c, size_t input) {
  return std::all_of(c.runs.begin(), c.runs.end(),
                     [&](const CaseRun& run) { return run.inputs[input].leaf; });
}

// Hooks can only be put on what requires grad, on every run.
bool canBeHooked(const Case& c, size_t input) {
  return std::all_of(c.runs.begin(), c.runs.end(), [&](const CaseRun& run) {
    return run.inputs[input].kind == InputSpec::Kind::Tensor && run.inputs[input].requires_grad;
  });
}

void chooseHooks(Case& c, Choices& choices, const std::vector<std::string>& seams) {
  Choices::Span span(choices, "hooks");
  for (size_t input = 0; input < c.graph->inputs().size(); ++input) {
    if (!canBeHooked(c, input) || !choices.flip(75)) continue;
    std::vector<HookKind> kinds = {HookKind::Tensor, HookKind::RetainGrad};
    if (isLeafOnEveryRun(c, input)) kinds = {HookKind::Tensor, HookKind::PostAccumulate};
    c.plan.hooks.push_back({kinds[choices.below(2)], input, ""});
    if (choices.flip(20)) c.plan.hooks.push_back({kinds[choices.below(2)], input, ""});
  }
  for (const std::string& seam : seams) {
    if (choices.flip(30)) c.plan.hooks.push_back({HookKind::Tensor, 0, seam});
  }
}

}  // namespace

void choosePlan(Case& c, Choices& choices, const Swarm& swarm) {
  std::vector<std::string> seams;
  if (swarm.has(Feature::breaks)) seams = chooseBreaks(c, choices);
  if (swarm.has(Feature::hooks)) chooseHooks(c, choices, seams);
}

}  // namespace faultline
