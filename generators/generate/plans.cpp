#include "generators/generate/plans.h"

#include <algorithm>
#include <array>

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

bool hasBlocks(const Case& c) {
  return std::any_of(c.graph->nodes().begin(), c.graph->nodes().end(),
                     [](const Node* node) { return !node->blocks().empty(); });
}

void addCutNames(const torch::jit::Block* block, const NodeNames& all, bool inside,
                 std::vector<std::string>& names) {
  for (const Node* node : block->nodes()) {
    bool plain =
        node->kind() != prim::Constant && node->kind() != prim::profile && node->outputs().size() == 1;
    bool here = !inside || node->owningBlock() != node->owningGraph()->block();
    if (here && plain && node->output()->type()->kind() == c10::TypeKind::TensorType) {
      names.push_back(all.of(node));
    }
    for (const auto* inner : node->blocks()) {
      if (inside) addCutNames(inner, all, inside, names);
    }
  }
}

// Ops behind which a cut can be asked for, of the outermost block or of the others: names are those of the
// graph with subgraphs inlined, so there must be none.
std::vector<std::string> cutNames(const Case& c, bool inside) {
  std::vector<std::string> names;
  if (hasSubgraph(c.graph->block())) return names;
  addCutNames(c.graph->block(), NodeNames(*c.graph), inside, names);
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
  // What cannot be had is asked for too: the plan says why.
  if (choices.flip(4)) {
    NodeNames all(*c.graph);
    for (const Node* node : c.graph->nodes()) {
      if (node->kind() != prim::Constant) continue;
      c.plan.breaks += " " + all.of(node);
      break;
    }
  }
  for (int64_t cuts = choices.between(1, 3); cuts > 0; --cuts) {
    const std::string& name = names[choices.below(names.size())];
    if (std::find(chosen.begin(), chosen.end(), name) != chosen.end()) continue;
    chosen.push_back(name);
    c.plan.breaks += " " + name;
  }
  return chosen;
}

// What kinds of ops these are, each once; without the number that a name ends with.
std::vector<std::string> kindsOf(const Case& c, const std::vector<std::string>& names) {
  std::vector<std::string> kinds;
  const NodeNames all(*c.graph);
  for (const std::string& name : names) {
    const std::string kind = all.find(name)->kind().toQualString();
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return kinds;
}

// A bucket takes a few of the small tensors that cases have.
std::string chooseBuckets(Choices& choices) {
  const int64_t first = choices.between(1, 8) * 8;
  const int64_t cap = choices.between(1, 8) * 16;
  return fmt::format("ddp {} {}{}", first, cap, choices.flip(30) ? " ddpoptimizer" : "");
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

// " x" for an input that requires grad; "": for none in particular.
std::string chooseParameter(const Case& c, Choices& choices) {
  std::vector<std::string> names;
  for (const auto* input : c.graph->inputs()) {
    const std::string name = input->debugName();
    if (canBeHooked(c, input->offset()) && name.find('.') == std::string::npos) names.push_back(" " + name);
  }
  return names.empty() ? "" : names[choices.below(names.size())];
}

std::vector<std::string> chooseBreaks(Case& c, Choices& choices) {
  Choices::Span span(choices, "breaks");
  const bool inside = hasBlocks(c) && choices.flip(50);
  const std::vector<std::string> names = cutNames(c, inside);
  if (inside && names.empty()) {
    c.plan.breaks = fmt::format("inside every {}", choices.between(1, 3));
    return {};
  }
  if (inside && choices.flip(30)) {
    std::vector<std::string> kinds = kindsOf(c, names);
    c.plan.breaks = choices.flip(50) ? fmt::format("inside every {}", choices.between(1, 4))
                                     : "inside kinds " + kinds[choices.below(kinds.size())];
    return {};
  }
  if (inside && choices.flip(60)) return chooseNames(c, choices, names);
  const bool sized = sizesAreKnown(c);
  const bool named = !names.empty() && !inside;
  switch (choices.weighted({12, named ? 40u : 0u, 14, 12, 16, sized ? 16u : 0u, named ? 14u : 0u})) {
    case 1:
      return chooseNames(c, choices, names);
    case 2: {
      const int64_t pieces = choices.between(2, 6);
      c.plan.breaks = fmt::format("balanced {} {}", pieces, sized && choices.flip(40) ? "bytes" : "ops");
      return {};
    }
    case 3:
      c.plan.breaks = "parameters" + (choices.flip(40) ? chooseParameter(c, choices) : "");
      return {};
    case 4:
      c.plan.breaks = "shards";
      return {};
    case 5:
      c.plan.breaks = chooseBuckets(choices);
      return {};
    case 6: {
      const std::vector<std::string> kinds = kindsOf(c, cutNames(c, hasBlocks(c) && choices.flip(50)));
      c.plan.breaks = kinds.empty() ? "none" : "kinds " + kinds[choices.below(kinds.size())];
      return {};
    }
    default:
      c.plan.breaks = fmt::format("every {}", choices.between(1, 8));
      return {};
  }
}

// What hooks of a case do besides being seen. One that throws ends a phase before the others were all seen:
// what changes for good when it fires is then left out.
enum class Mood { Quiet, Throws, Acts };

void chooseAction(HookSpec& hook, Choices& choices, Mood mood, bool second_order) {
  std::vector<HookAction> fitting;
  for (HookAction action : allHookActions()) {
    if (action == HookAction::Log || action == HookAction::Throw || !fitsHook(action, hook)) continue;
    // The engine's hooks on seams do not see all of a second-order gradient, and so cannot replace it.
    if (second_order && action == HookAction::Replace && !hook.seam.empty()) continue;
    fitting.push_back(action);
  }
  if (mood == Mood::Acts && !fitting.empty() && choices.flip(40)) {
    hook.action = fitting[choices.below(fitting.size())];
  }
}

// One of them throws, and the phase is tried again: then all has to be as if nothing had been.
void chooseThrowing(Case& c, Choices& choices) {
  std::vector<HookSpec*> fitting;
  for (HookSpec& hook : c.plan.hooks) {
    if (fitsHook(HookAction::Throw, hook)) fitting.push_back(&hook);
  }
  if (fitting.empty()) return;
  fitting[choices.below(fitting.size())]->action = HookAction::Throw;
  for (CaseRun& run : c.runs) {
    if (!run.backwards.empty()) run.backwards.insert(run.backwards.begin(), run.backwards.front());
  }
}

void chooseHooks(Case& c, Choices& choices, const std::vector<std::string>& seams) {
  Choices::Span span(choices, "hooks");
  const Mood mood = std::array{Mood::Quiet, Mood::Throws, Mood::Acts}[choices.weighted({50, 15, 35})];
  bool second_order = false;
  for (const CaseRun& run : c.runs) {
    for (const BackwardSpec& phase : run.backwards) {
      second_order = second_order || phase.kind == BackwardSpec::Kind::Double;
    }
  }
  auto add = [&](HookKind kind, size_t input, const std::string& seam) {
    HookSpec hook{kind, input, seam};
    chooseAction(hook, choices, mood, second_order);
    c.plan.hooks.push_back(hook);
  };
  for (size_t input = 0; input < c.graph->inputs().size(); ++input) {
    if (!canBeHooked(c, input) || !choices.flip(75)) continue;
    std::vector<HookKind> kinds;
    for (HookKind kind : allHookKinds()) {
      const bool leaf = isLeafOnEveryRun(c, input);
      if (kind != (leaf ? HookKind::RetainGrad : HookKind::PostAccumulate)) kinds.push_back(kind);
    }
    for (int64_t hooks = choices.flip(30) ? 2 : 1; hooks > 0; --hooks) {
      // One in two is of the kind that everybody uses.
      add(choices.flip(30) ? HookKind::Tensor : kinds[choices.below(kinds.size())], input, "");
    }
  }
  for (const std::string& seam : seams) {
    if (!choices.flip(40)) continue;
    const auto kinds = std::array{HookKind::Tensor, HookKind::RetainGrad, HookKind::NodePre,
                                  HookKind::NodePost, HookKind::BackwardEnd};
    add(kinds[choices.weighted({50, 15, 12, 12, 11})], 0, seam);
  }
  if (mood == Mood::Throws) chooseThrowing(c, choices);
}

}  // namespace

void choosePlan(Case& c, Choices& choices, const Swarm& swarm) {
  std::vector<std::string> seams;
  if (swarm.has(Feature::breaks)) seams = chooseBreaks(c, choices);
  if (swarm.has(Feature::hooks)) chooseHooks(c, choices, seams);
}

}  // namespace faultline
