// Edits of stretches: into blocks, regions and subgraphs, and out of them.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "generators/generate/subgraphs.h"
#include "generators/mutate/draft.h"
#include "generators/mutate/mutate.h"
#include "generators/mutate/scene.h"
#include "generators/ops/limits.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

using Stretch = std::vector<Node*>;

constexpr size_t longest_stretch = 5;

c10::Symbol isGradEnabled() { return c10::Symbol::aten("is_grad_enabled"); }
c10::Symbol setGradEnabled() { return c10::Symbol::aten("set_grad_enabled"); }

void moveInto(const Stretch& stretch, Block* block) {
  for (Node* node : stretch) node->moveBefore(block->return_node());
}

// A copy of the stretch at the end of `block`; gives what became of its values.
std::unordered_map<Value*, Value*> copyInto(const Stretch& stretch, torch::jit::Graph& graph, Block* block) {
  std::unordered_map<Value*, Value*> copies;
  for (Node* node : stretch) {
    Node* copy = graph.createClone(node, [&](Value* value) {
      auto found = copies.find(value);
      return found == copies.end() ? value : found->second;
    });
    copy->insertBefore(block->return_node());
    for (size_t i = 0; i < node->outputs().size(); ++i) copies[node->output(i)] = copy->output(i);
  }
  return copies;
}

Value* pickCondition(Draft& draft, Scene& scene, Node* place) {
  std::vector<Value*> known;
  for (Value* value : valuesInScope(place)) {
    if (value->type()->kind() == c10::TypeKind::BoolType && value->node()->kind() != prim::Constant) {
      known.push_back(value);
    }
  }
  if (!known.empty() && (!scene.roomForInput() || draft.choices.flip(40))) {
    return known[draft.choices.below(known.size())];
  }
  if (!scene.roomForInput()) return nullptr;
  std::vector<InputSpec> per_run(draft.c.runs.size());
  for (InputSpec& spec : per_run) {
    spec.kind = InputSpec::Kind::Bool;
    spec.bool_value = draft.choices.flip(50);
  }
  return scene.addInput(per_run, c10::BoolType::get());
}

// One value of each one's form for what the stretch makes; empty: there is none for some.
std::vector<Value*> standInsFor(Draft& draft, const Scene& scene, const std::vector<OuterUse>& made) {
  std::vector<Value*> found;
  for (const OuterUse& each : made) {
    std::vector<Value*> fitting = scene.standIns(each.value);
    if (fitting.empty()) return {};
    found.push_back(fitting[draft.choices.below(fitting.size())]);
  }
  return found;
}

void unwrapIf(Draft& draft, Node* node) {
  Block* arm = node->blocks()[draft.choices.below(2)];
  std::vector<Value*> results = arm->outputs().vec();
  std::vector<Node*> inside(arm->nodes().begin(), arm->nodes().end());
  for (Node* each : inside) each->moveBefore(node);
  for (size_t i = 0; i < results.size(); ++i) node->output(i)->replaceAllUsesWith(results[i]);
  node->destroy();
}

// As if it ran once.
void unwrapLoop(Draft& draft, Node* node) {
  Block* body = node->blocks()[0];
  Scene scene(draft.c, draft.choices, node);
  body->inputs()[0]->replaceAllUsesWith(scene.constant(int64_t{0}));
  for (size_t i = 1; i < body->inputs().size(); ++i)
    body->inputs()[i]->replaceAllUsesWith(node->input(i + 1));
  std::vector<Value*> results = body->outputs().vec();
  std::vector<Node*> inside(body->nodes().begin(), body->nodes().end());
  for (Node* each : inside) each->moveBefore(node);
  for (size_t i = 0; i < node->outputs().size(); ++i) node->output(i)->replaceAllUsesWith(results[i + 1]);
  node->destroy();
}

void unwrapSubgraph(Draft& draft, Node* node) {
  std::shared_ptr<torch::jit::Graph> subgraph = node->g(torch::jit::attr::Subgraph);
  std::unordered_map<Value*, Value*> outer;
  for (size_t i = 0; i < node->inputs().size(); ++i) outer[subgraph->inputs()[i]] = node->input(i);
  for (Node* inner : subgraph->nodes()) {
    Node* copy = draft.graph().createClone(inner, [&](Value* value) { return outer.at(value); });
    copy->insertBefore(node);
    for (size_t i = 0; i < inner->outputs().size(); ++i) outer[inner->output(i)] = copy->output(i);
  }
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    node->output(i)->replaceAllUsesWith(outer.at(subgraph->outputs()[i]));
  }
  node->destroy();
}

// `before` asks for the mode, the next node sets another, a later one puts it back.
bool isRegion(const Node* before) {
  if (before->kind() != isGradEnabled() || before->output()->uses().size() != 1) return false;
  const Node* end = before->output()->uses()[0].user;
  return end->kind() == setGradEnabled() && end->owningBlock() == before->owningBlock() &&
         before->next()->kind() == setGradEnabled() && before->next() != end && before->isBefore(end);
}

void unwrapRegion(Node* before) {
  Node* end = before->output()->uses()[0].user;
  Node* begin = before->next();
  end->destroy();
  begin->destroy();
  before->destroy();
}

bool hasPlainSubgraph(const Node* node) {
  return node->hasAttribute(torch::jit::attr::Subgraph) &&
         node->kindOf(torch::jit::attr::Subgraph) == torch::jit::AttributeKind::g &&
         !node->hasAttribute(torch::jit::attr::ReverseSubgraph);
}

}  // namespace

bool changesGradMode(const Node* node) {
  return node->kind() == isGradEnabled() || node->kind() == setGradEnabled();
}

size_t depthOf(const Node* node) {
  size_t depth = 0;
  for (const Node* owner = node->owningBlock()->owningNode(); owner != nullptr;
       owner = owner->owningBlock()->owningNode()) {
    ++depth;
  }
  return depth;
}

std::vector<Node*> pickStretch(Draft& draft) {
  std::vector<Node*> starts;
  for (Node* node : allNodes(draft.graph())) {
    if (node->kind() != prim::Constant && !changesGradMode(node)) starts.push_back(node);
  }
  if (starts.empty()) return {};
  Stretch stretch = {starts[draft.choices.below(starts.size())]};
  for (size_t length = 1 + draft.choices.below(longest_stretch); stretch.size() < length;) {
    Node* next = stretch.back()->next();
    bool ends = next->kind() == prim::Return || next->kind() == prim::Constant || changesGradMode(next);
    if (ends) break;
    stretch.push_back(next);
  }
  return stretch;
}

std::vector<OuterUse> usedBehind(const Stretch& stretch) {
  std::unordered_set<const Node*> inside(stretch.begin(), stretch.end());
  auto isInside = [&](const Node* user) {
    for (const Node* node = user; node != nullptr; node = node->owningBlock()->owningNode()) {
      if (inside.count(node) != 0) return true;
    }
    return false;
  };
  std::vector<OuterUse> used;
  for (Node* node : stretch) {
    for (Value* output : node->outputs()) {
      OuterUse outer{output, {}};
      for (const Use& use : output->uses()) {
        if (!isInside(use.user)) outer.uses.push_back(use);
      }
      if (!outer.uses.empty()) used.push_back(std::move(outer));
    }
  }
  return used;
}

void redirect(const std::vector<Use>& uses, Value* to) {
  for (const Use& use : uses) use.user->replaceInput(use.offset, to);
}

bool wrapIf(Draft& draft) {
  Stretch stretch = pickStretch(draft);
  if (stretch.empty() || depthOf(stretch[0]) >= mutate_limits::max_depth) return false;
  Scene scene(draft.c, draft.choices, stretch[0]);
  Value* condition = pickCondition(draft, scene, stretch[0]);
  if (condition == nullptr) return false;
  std::vector<OuterUse> made = usedBehind(stretch);
  std::vector<Value*> others = standInsFor(draft, scene, made);

  Node* branch = draft.graph().create(prim::If, {condition}, 0);
  branch->insertBefore(stretch[0]);
  Block *arm = branch->addBlock(), *other = branch->addBlock();
  if (draft.choices.flip(50)) std::swap(arm, other);
  // The other arm does the same, or nothing.
  std::unordered_map<Value*, Value*> copies;
  bool copied = others.empty() || draft.choices.flip(40);
  if (copied) copies = copyInto(stretch, draft.graph(), other);
  moveInto(stretch, arm);
  for (size_t i = 0; i < made.size(); ++i) {
    arm->registerOutput(made[i].value);
    other->registerOutput(copied ? copies.at(made[i].value) : others[i]);
    Value* result = branch->addOutput();
    result->setType(made[i].value->type());
    redirect(made[i].uses, result);
  }
  return true;
}

bool wrapLoop(Draft& draft) {
  Stretch stretch = pickStretch(draft);
  if (stretch.empty() || depthOf(stretch[0]) >= mutate_limits::max_depth) return false;
  Scene scene(draft.c, draft.choices, stretch[0]);
  std::vector<OuterUse> made = usedBehind(stretch);
  std::vector<Value*> initial = standInsFor(draft, scene, made);
  if (initial.size() != made.size()) return false;
  Value* count = nullptr;
  if (scene.roomForInput() && draft.choices.flip(50)) {
    std::vector<InputSpec> per_run(draft.c.runs.size());
    for (InputSpec& spec : per_run) {
      spec.kind = InputSpec::Kind::Int;
      spec.int_value = draft.choices.between(0, limits::max_trips);
    }
    count = scene.addInput(per_run, c10::IntType::get());
  } else {
    count = scene.constant(draft.choices.between(1, limits::max_trips));
  }
  std::vector<Value*> inputs = {count, scene.constant(true)};
  inputs.insert(inputs.end(), initial.begin(), initial.end());
  Node* loop = draft.graph().create(prim::Loop, inputs, 0);
  loop->insertBefore(stretch[0]);
  Block* body = loop->addBlock();
  body->addInput()->setType(c10::IntType::get());
  moveInto(stretch, body);
  body->registerOutput(inputs[1]);
  for (size_t i = 0; i < made.size(); ++i) {
    Value* carried = body->addInput();
    carried->setType(made[i].value->type());
    // Half of the time the next trip goes on where this one ended.
    std::vector<Use> uses = draft.choices.flip(50) ? initial[i]->uses() : std::vector<Use>();
    for (const Use& use : uses) {
      if (std::find(stretch.begin(), stretch.end(), use.user) != stretch.end()) {
        use.user->replaceInput(use.offset, carried);
      }
    }
    body->registerOutput(made[i].value);
    Value* result = loop->addOutput();
    result->setType(made[i].value->type());
    redirect(made[i].uses, result);
  }
  return true;
}

bool wrapNoGrad(Draft& draft) {
  Stretch stretch = pickStretch(draft);
  if (stretch.empty()) return false;
  Scene scene(draft.c, draft.choices, stretch[0]);
  Value* mode = scene.constant(draft.choices.flip(20));
  Node* before = draft.graph().create(isGradEnabled(), 1);
  before->output()->setType(c10::BoolType::get());
  before->insertBefore(stretch.front());
  draft.graph().create(setGradEnabled(), {mode}, 0)->insertBefore(stretch.front());
  draft.graph().create(setGradEnabled(), {before->output()}, 0)->insertAfter(stretch.back());
  return true;
}

bool wrapSubgraph(Draft& draft) { return wrapSubgraphs(draft.graph(), draft.choices) != 0; }

bool unwrap(Draft& draft) {
  std::vector<Node*> wrappers;
  for (Node* node : allNodes(draft.graph())) {
    bool wraps =
        node->kind() == prim::If || node->kind() == prim::Loop || hasPlainSubgraph(node) || isRegion(node);
    if (wraps) wrappers.push_back(node);
  }
  if (wrappers.empty()) return false;
  Node* node = wrappers[draft.choices.below(wrappers.size())];
  if (node->kind() == prim::If) {
    unwrapIf(draft, node);
  } else if (node->kind() == prim::Loop) {
    unwrapLoop(draft, node);
  } else if (isRegion(node)) {
    unwrapRegion(node);
  } else {
    unwrapSubgraph(draft, node);
  }
  return true;
}

}  // namespace faultline
