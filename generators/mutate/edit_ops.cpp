// Edits of single nodes.
#include <algorithm>

#include <torch/csrc/jit/ir/constants.h>

#include "generators/mutate/draft.h"
#include "generators/mutate/forecast.h"
#include "generators/mutate/mutate.h"
#include "generators/mutate/scene.h"
#include "generators/ops/limits.h"
#include "generators/ops/row_operator.h"
#include "generators/ops/rules.h"
#include "generators/ops/site.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

// Draws before an edit gives up: most places have something for it.
constexpr int draws = 6;

template <class T>
T* pickOrNull(Choices& choices, const std::vector<T*>& from) {
  return from.empty() ? nullptr : from[choices.below(from.size())];
}

template <class Condition>
Node* pickNode(Draft& draft, Condition condition) {
  std::vector<Node*> fitting;
  for (Node* node : allNodes(draft.graph())) {
    if (node->kind() != prim::Constant && condition(node)) fitting.push_back(node);
  }
  return pickOrNull(draft.choices, fitting);
}

// Nodes to put something before, returns of blocks among them.
Node* pickPlace(Draft& draft) {
  std::vector<Node*> places = {draft.graph().return_node()};
  for (Node* node : allNodes(draft.graph())) {
    if (node->kind() != prim::Constant) places.push_back(node);
    for (Block* block : node->blocks()) places.push_back(block->return_node());
  }
  return places[draft.choices.below(places.size())];
}

bool isTensorValue(const Value* value) { return value->type()->kind() == c10::TypeKind::TensorType; }

// Uses behind `node` of values like `made`: they could take it instead.
std::vector<Use> usesForResult(const Scene& scene, const Form& form, const Value* made) {
  std::vector<Use> uses;
  auto walk = [&](auto& self, Node* user) -> void {
    for (size_t i = 0; i < user->inputs().size(); ++i) {
      Value* now = user->input(i);
      if (now != made && isTensorValue(now) && scene.formOf(now).sameShape(form)) uses.push_back({user, i});
    }
    for (Block* block : user->blocks()) {
      for (Node* inner : block->nodes()) self(self, inner);
      self(self, block->return_node());
    }
  };
  for (Node* user = made->node()->next();; user = user->next()) {
    walk(walk, user);
    if (user->kind() == prim::Return) return uses;
  }
}

// Lets something depend on a new result: a later operand of its form, or the graph's returns.
void connect(Draft& draft, Value* made) {
  Scene scene(draft.c, draft.choices, made->node()->next());
  const Form& form = scene.formOf(made);
  std::vector<Use> uses = usesForResult(scene, form, made);
  bool top = made->node()->owningBlock() == draft.graph().block();
  bool returns = top && draft.graph().outputs().size() < mutate_limits::max_returns;
  if (!uses.empty() && !(returns && draft.choices.flip(30))) {
    const Use& use = uses[draft.choices.below(uses.size())];
    use.user->replaceInput(use.offset, made);
  } else if (returns) {
    draft.graph().registerOutput(made);
  }
}

Node* makeNode(Draft& draft, const OpRow& row, const std::vector<Value*>& arguments) {
  const RowOperator& op = operatorOf(row);
  const auto& returns = op.op->schema().returns();
  Node* node = draft.graph().create(op.kind, arguments, returns.size());
  for (size_t i = 0; i < returns.size(); ++i) node->output(i)->setType(returns[i].type());
  return node;
}

bool tooWild(const OpRow& row, const Operands& operands) {
  std::vector<Range> ranges;
  for (const Operand& operand : operands.tensors) ranges.push_back(operand.range);
  size_t elements = operands.tensors.empty() ? 0 : static_cast<size_t>(operands.tensors[0].elements());
  return resultRange(row.result, ranges, elements).magnitude > limits::max_magnitude;
}

// Tensors that the node made, lists unpacked.
std::vector<Value*> tensorResults(Draft& draft, Node* node) {
  std::vector<Value*> tensors;
  for (Value* output : node->outputs()) {
    if (isTensorValue(output)) tensors.push_back(output);
  }
  bool list = node->outputs().size() == 1 && node->output()->type()->kind() == c10::TypeKind::ListType;
  if (!list) return tensors;
  Scene scene(draft.c, draft.choices, node->next());
  const Form& form = scene.formOf(node->output());
  if (!form.known || form.elements.empty()) return tensors;
  Node* unpack = draft.graph().create(prim::ListUnpack, {node->output()}, form.elements.size());
  for (Value* output : unpack->outputs()) {
    output->setType(c10::TensorType::get());
    tensors.push_back(output);
  }
  unpack->insertAfter(node);
  return tensors;
}

// The row's words for arguments that are no tensors, with the node's tensors in the others.
bool drawArgumentsAgain(const OpRow& row, Node* node, Scene& scene) {
  Operands found;
  Site site{found, scene};
  std::vector<std::string> words = splitWords(row.operands, ' ');
  for (size_t i = 0; i < node->inputs().size() && i < words.size(); ++i) {
    Value* input = node->input(i);
    bool drawn = !isTensorWord(words[i]) && elementPredicates(words[i], 0).empty();
    if (drawn) {
      Value* made = makeArgument(site, words[i]);
      if (made == nullptr) return false;
      node->replaceInput(i, made);
      continue;
    }
    std::vector<Form> forms = {scene.formOf(input)};
    if (forms[0].kind == Form::Kind::List) forms = forms[0].elements;
    for (const Form& form : forms) {
      if (!form.isTensor() || !form.known) {
        if (form.kind == Form::Kind::None) continue;
        return false;
      }
      found.tensors.push_back(form.operand);
    }
    if (found.tensors.empty()) return false;
  }
  return !found.tensors.empty();
}

}  // namespace

bool insertOp(Draft& draft) {
  Node* place = pickPlace(draft);
  Scene scene(draft.c, draft.choices, place);
  std::vector<uint32_t> weights;
  for (const OpRow& row : opRows()) weights.push_back(row.weight);
  for (int i = 0; i < draws; ++i) {
    const OpRow& row = opRows()[draft.choices.weighted(weights)];
    std::optional<Operands> operands = findOperands(row, operatorOf(row).op->schema(), scene);
    if (!operands || tooWild(row, *operands)) continue;
    Node* node = makeNode(draft, row, operands->arguments);
    node->insertBefore(place);
    std::vector<Value*> results = tensorResults(draft, node);
    if (!results.empty()) connect(draft, results[draft.choices.below(results.size())]);
    return true;
  }
  return false;
}

bool deleteNode(Draft& draft) {
  for (int i = 0; i < draws; ++i) {
    Node* node = pickNode(draft, [](const Node* n) { return n->blocks().empty() && !changesGradMode(n); });
    if (node == nullptr) return false;
    Scene scene(draft.c, draft.choices, node);
    std::vector<Value*> heirs;
    for (Value* output : node->outputs()) {
      std::vector<Value*> fitting = scene.standIns(output);
      // What it was made of comes first: the rest of the program stays as it is.
      std::vector<Value*> own;
      for (Value* value : fitting) {
        bool operand = std::find(node->inputs().begin(), node->inputs().end(), value) != node->inputs().end();
        if (operand) own.push_back(value);
      }
      if (!own.empty() && draft.choices.flip(75)) fitting = own;
      heirs.push_back(output->hasUses() ? pickOrNull(draft.choices, fitting) : output);
    }
    if (std::count(heirs.begin(), heirs.end(), nullptr) != 0) continue;
    for (size_t k = 0; k < heirs.size(); ++k) {
      if (heirs[k] != node->output(k)) node->output(k)->replaceAllUsesWith(heirs[k]);
    }
    node->destroy();
    return true;
  }
  return false;
}

bool replaceOp(Draft& draft) {
  Node* node = pickNode(draft, [](const Node* n) { return rowOfNode(n) != nullptr; });
  if (node == nullptr) return false;
  const OpRow& old = *rowOfNode(node);
  std::vector<const OpRow*> others;
  for (const OpRow& row : opRows()) {
    bool alike = &row != &old && row.operands == old.operands && row.mutates == old.mutates &&
                 operatorOf(row).op->schema().returns().size() == node->outputs().size();
    if (alike) others.push_back(&row);
  }
  if (others.empty()) return false;
  const OpRow& row = *others[draft.choices.below(others.size())];
  Scene scene(draft.c, draft.choices, node);
  const auto& wanted = operatorOf(row).op->schema().arguments();
  size_t words = splitWords(row.operands, ' ').size();
  std::vector<Value*> arguments;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i >= words && !wanted[i].default_value()) return false;
    arguments.push_back(i < words ? node->input(i) : scene.constant(*wanted[i].default_value()));
  }
  Node* made = makeNode(draft, row, arguments);
  made->insertBefore(node);
  for (size_t i = 0; i < node->outputs().size(); ++i) node->output(i)->replaceAllUsesWith(made->output(i));
  node->destroy();
  return true;
}

bool swapOperands(Draft& draft) {
  using Pair = std::pair<size_t, size_t>;
  std::vector<std::pair<Node*, Pair>> pairs;
  for (Node* node : allNodes(draft.graph())) {
    for (size_t a = 0; a < node->inputs().size(); ++a) {
      for (size_t b = a + 1; b < node->inputs().size(); ++b) {
        const Value *x = node->input(a), *y = node->input(b);
        if (x != y && isTensorValue(x) && *x->type() == *y->type()) pairs.push_back({node, {a, b}});
      }
    }
  }
  if (pairs.empty()) return false;
  auto [node, pair] = pairs[draft.choices.below(pairs.size())];
  Value *x = node->input(pair.first), *y = node->input(pair.second);
  node->replaceInput(pair.first, y);
  node->replaceInput(pair.second, x);
  return true;
}

bool redirectOperand(Draft& draft) {
  for (int i = 0; i < draws; ++i) {
    Node* node = pickNode(draft, [](const Node* n) { return !n->inputs().empty() && !changesGradMode(n); });
    if (node == nullptr) return false;
    size_t offset = draft.choices.below(node->inputs().size());
    Scene scene(draft.c, draft.choices, node);
    Value* to = pickOrNull(draft.choices, scene.standIns(node->input(offset)));
    if (to == nullptr) continue;
    node->replaceInput(offset, to);
    return true;
  }
  return false;
}

bool duplicateNode(Draft& draft) {
  Node* node = pickNode(draft, [](const Node* n) {
    return n->blocks().empty() && !changesGradMode(n) && !n->outputs().empty();
  });
  if (node == nullptr) return false;
  Node* twin = draft.graph().createClone(node, [](Value* value) { return value; });
  twin->insertAfter(node);
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    std::vector<Use> uses = node->output(i)->uses();
    for (const Use& use : uses) {
      if (draft.choices.flip(50)) use.user->replaceInput(use.offset, twin->output(i));
    }
  }
  return true;
}

bool changeAttributes(Draft& draft) {
  for (int i = 0; i < draws; ++i) {
    Node* node =
        pickNode(draft, [](const Node* n) { return rowOfNode(n) != nullptr && n->inputs().size() > 1; });
    if (node == nullptr) return false;
    Scene scene(draft.c, draft.choices, node);
    std::vector<Value*> before = node->inputs().vec();
    if (drawArgumentsAgain(*rowOfNode(node), node, scene) && node->inputs().vec() != before) return true;
    for (size_t k = 0; k < before.size(); ++k) node->replaceInput(k, before[k]);
  }
  return false;
}

bool changeConstant(Draft& draft) {
  std::vector<Use> uses;
  for (Node* node : allNodes(draft.graph())) {
    if (rowOfNode(node) != nullptr) continue;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      std::optional<c10::IValue> value = torch::jit::toIValue(node->input(i));
      if (value && (value->isInt() || value->isBool() || value->isDouble())) uses.push_back({node, i});
    }
  }
  if (uses.empty()) return false;
  const Use& use = uses[draft.choices.below(uses.size())];
  c10::IValue old = *torch::jit::toIValue(use.user->input(use.offset));
  c10::IValue now = old.isBool() && !old.toBool();
  if (old.isInt()) now = draft.choices.between(0, limits::max_trips);
  if (old.isDouble()) now = 0.5 * static_cast<double>(draft.choices.between(-4, 4));
  if (sameConstant(old, now)) return false;
  Scene scene(draft.c, draft.choices, use.user);
  use.user->replaceInput(use.offset, scene.constant(now));
  return true;
}

bool changeReturns(Draft& draft) {
  torch::jit::Graph& graph = draft.graph();
  size_t returns = graph.outputs().size();
  if (returns > 1 && draft.choices.flip(50)) {
    graph.eraseOutput(draft.choices.below(returns));
    return true;
  }
  if (returns >= mutate_limits::max_returns) return false;
  Scene scene(draft.c, draft.choices, graph.return_node());
  if (scene.tensors().empty()) return false;
  graph.registerOutput(scene.tensors()[draft.choices.below(scene.tensors().size())].value);
  return true;
}

}  // namespace faultline
