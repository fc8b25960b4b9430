// Edits of what is done to the graph: hooks, cuts, profile nodes.
#include <algorithm>

#include <fmt/format.h>

#include "faultline/ir.h"
#include "generators/mutate/draft.h"
#include "generators/mutate/mutate.h"
#include "generators/mutate/scene.h"

namespace faultline {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

namespace {

// Ops of the outermost block whose result is one tensor: places for cuts and hooks. None beside subgraphs:
// lanes inline them, and names count anew.
std::vector<std::string> seamNames(const Case& c) {
  NodeNames names(*c.graph);
  std::vector<std::string> found;
  if (holdsSubgraph(*c.graph)) return found;
  for (const Node* node : c.graph->nodes()) {
    bool plain = node->kind() != prim::Constant && node->kind() != prim::profile &&
                 node->outputs().size() == 1 && !node->hasAttribute(attr::Subgraph);
    if (plain && node->output()->type()->kind() == c10::TypeKind::TensorType) found.push_back(names.of(node));
  }
  return found;
}

std::vector<Node*> profileNodes(Draft& draft) {
  std::vector<Node*> found;
  for (Node* node : allNodes(draft.graph())) {
    if (node->kind() == prim::profile && node->inputs().size() == 1) found.push_back(node);
  }
  return found;
}

c10::TensorTypePtr typeOf(const Form& form) {
  const Operand& operand = form.operand;
  return c10::TensorType::createContiguous(operand.dtype, at::kCPU, operand.sizes)
      ->withRequiresGrad(operand.requires_grad);
}

// What a profiling run would have noted, or something else.
c10::TensorTypePtr drawProfiledType(Choices& choices, const Form& form) {
  if (!form.known || choices.flip(25)) return c10::TensorType::get();
  c10::TensorTypePtr type = typeOf(form);
  switch (choices.weighted({60, 14, 13, 13})) {
    case 1:
      return type->withRequiresGrad(!form.operand.requires_grad);
    case 2:
      return type->withScalarType(form.operand.dtype == at::kDouble ? at::kFloat : at::kDouble);
    case 3: {
      std::vector<int64_t> sizes = form.operand.sizes;
      if (!sizes.empty()) ++sizes[choices.below(sizes.size())];
      return type->withSizes(sizes);
    }
    default:
      return type;
  }
}

void insertProfile(Draft& draft, Node* user, size_t offset, const c10::TensorTypePtr& type) {
  Node* node = draft.graph().create(prim::profile, {user->input(offset)}, 1);
  node->output()->setType(c10::TensorType::get());
  node->ty_(attr::profiled_type, type);
  node->insertBefore(user);
  user->replaceInput(offset, node->output());
}

bool addProfile(Draft& draft) {
  std::vector<std::pair<Node*, size_t>> places;
  for (Node* node : allNodes(draft.graph())) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Value* value = node->input(i);
      bool tensor =
          value->type()->kind() == c10::TypeKind::TensorType && value->node()->kind() != prim::Constant;
      if (tensor) places.emplace_back(node, i);
    }
  }
  if (places.empty()) return false;
  auto [user, offset] = places[draft.choices.below(places.size())];
  Scene scene(draft.c, draft.choices, user);
  insertProfile(draft, user, offset, drawProfiledType(draft.choices, scene.formOf(user->input(offset))));
  draft.c.plan.profile = "keep";
  return true;
}

}  // namespace

bool changeHooks(Draft& draft) {
  std::vector<HookSpec>& hooks = draft.c.plan.hooks;
  if (!hooks.empty() && draft.choices.flip(35)) {
    hooks.erase(hooks.begin() + static_cast<std::ptrdiff_t>(draft.choices.below(hooks.size())));
    return true;
  }
  if (hooks.size() >= mutate_limits::max_hooks) return false;
  HookSpec hook;
  std::vector<std::string> seams = seamNames(draft.c);
  if (!seams.empty() && draft.choices.flip(40)) {
    hook.seam = seams[draft.choices.below(seams.size())];
  } else {
    std::vector<HookSpec> fitting;
    for (size_t input = 0; input < draft.graph().inputs().size(); ++input) {
      for (HookKind kind : allHookKinds()) {
        if (mayBeHooked(draft.c, {kind, input, ""})) fitting.push_back({kind, input, ""});
      }
    }
    if (fitting.empty()) return false;
    hook = fitting[draft.choices.below(fitting.size())];
  }
  hooks.push_back(hook);
  markPlannedNodes(draft.c);
  return true;
}

bool changeCuts(Draft& draft) {
  std::string before = draft.c.plan.breaks;
  std::vector<std::string> seams = seamNames(draft.c);
  switch (draft.choices.weighted({35, 45, 20})) {
    case 1: {
      std::string names;
      for (int64_t cuts = draft.choices.between(1, 4); cuts > 0 && !seams.empty(); --cuts) {
        size_t at = draft.choices.below(seams.size());
        names += " " + seams[at];
        seams.erase(seams.begin() + static_cast<std::ptrdiff_t>(at));
      }
      draft.c.plan.breaks = names.empty() ? "none" : "after" + names;
      break;
    }
    case 2:
      draft.c.plan.breaks = "none";
      break;
    default:
      draft.c.plan.breaks = fmt::format("every {}", draft.choices.between(1, 8));
      break;
  }
  markPlannedNodes(draft.c);
  return draft.c.plan.breaks != before;
}

bool changeProfile(Draft& draft) {
  std::vector<Node*> nodes = profileNodes(draft);
  switch (draft.choices.weighted({50, 20, 20, 10})) {
    case 1: {
      if (nodes.empty()) return false;
      Node* node = nodes[draft.choices.below(nodes.size())];
      node->output()->replaceAllUsesWith(node->input());
      node->destroy();
      return true;
    }
    case 2: {
      if (nodes.empty()) return false;
      Node* node = nodes[draft.choices.below(nodes.size())];
      Scene scene(draft.c, draft.choices, node);
      node->ty_(attr::profiled_type, drawProfiledType(draft.choices, scene.formOf(node->input())));
      return true;
    }
    case 3: {
      std::string before = draft.c.plan.profile;
      draft.c.plan.profile =
          std::vector<std::string>{"none", "keep", "record"}[draft.choices.weighted({45, 45, 10})];
      return draft.c.plan.profile != before;
    }
    default:
      return addProfile(draft);
  }
}

}  // namespace faultline
