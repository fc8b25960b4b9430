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

// Bytes of parameters are known where no run gives an input of another size.
bool sizesAreKnown(const Case& c) {
  for (const CaseRun& run : c.runs) {
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      if (!(run.inputs[i] == c.runs[0].inputs[i])) return false;
    }
  }
  return true;
}

std::vector<std::string> chooseNames(Case& c, Choices& choices, const std::vector<std::string>& names) {
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

// A bucket takes a few of the small tensors that cases have.
std::string chooseBuckets(Choices& choices) {
  const int64_t first = choices.between(1, 8) * 8;
  const int64_t cap = choices.between(1, 8) * 16;
  return fmt::format("ddp {} {}{}", first, cap, choices.flip(30) ? " ddpoptimizer" : "");
}

std::vector<std::string> chooseBreaks(Case& c, Choices& choices) {
  Choices::Span span(choices, "breaks");
  const std::vector<std::string> names = cutNames(c);
  const bool sized = sizesAreKnown(c);
  switch (choices.weighted({30, 40, 8, 8, 6, 8})) {
    case 1:
      if (!names.empty()) return chooseNames(c, choices, names);
      break;
    case 2: {
      const int64_t pieces = choices.between(2, 6);
      c.plan.breaks = fmt::format("balanced {} {}", pieces, sized && choices.flip(40) ? "bytes" : "ops");
      return {};
    }
    case 3:
      c.plan.breaks = "parameters";
      return {};
    case 4:
      c.plan.breaks = "shards";
      return {};
    case 5:
      if (sized) {
        c.plan.breaks = chooseBuckets(choices);
        return {};
      }
      break;
    default:
      break;
  }
  c.plan.breaks = fmt::format("every {}", choices.between(1, 8));
  return {};
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
