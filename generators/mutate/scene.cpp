#include "generators/mutate/scene.h"

#include <algorithm>
#include <unordered_set>

#include <torch/csrc/jit/ir/constants.h>

#include "generators/mutate/forecast.h"
#include "generators/mutate/mutate.h"
#include "generators/ops/limits.h"
#include "generators/ops/row_operator.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

void collectScope(const Block* block, const Node* end, std::vector<Value*>& into) {
  if (block->owningNode() != nullptr)
    collectScope(block->owningNode()->owningBlock(), block->owningNode(), into);
  for (const Value* input : block->inputs()) into.push_back(const_cast<Value*>(input));
  for (const Node* node : block->nodes()) {
    if (node == end) break;
    for (const Value* output : node->outputs()) into.push_back(const_cast<Value*>(output));
  }
}

// Sizes and the dtype that are most at home in the case.
InputStyle styleOf(const Case& c) {
  InputStyle style;
  for (const InputSpec& spec : c.runs.front().inputs) {
    if (spec.kind != InputSpec::Kind::Tensor) continue;
    if (style.palette.empty() && at::isFloatingType(spec.dtype)) style.dtype = spec.dtype;
    for (int64_t size : spec.sizes) {
      if (size > 0 && size <= limits::max_size) style.palette.push_back(size);
    }
  }
  if (style.palette.empty()) style.palette.push_back(2);
  return style;
}

}  // namespace

std::vector<Value*> valuesInScope(Node* place) {
  std::vector<Value*> values;
  collectScope(place->owningBlock(), place, values);
  return values;
}

Scene::Scene(Case& c, Choices& choices, Node* place)
    : case_(c), choices_(choices), place_(place), scope_(valuesInScope(place)), style_(styleOf(c)) {
  swarm_.features.set(static_cast<size_t>(Feature::mixed_grad));
  swarm_.features.set(static_cast<size_t>(Feature::patterns));
  swarm_.features.set(static_cast<size_t>(Feature::layouts));

  FormReader reader(c, c.runs.front());
  std::unordered_map<const Value*, Form> here;
  reader.before = [&](const Node* node) {
    const Node* last = node->prev();
    if (last->kind() != prim::Param) {
      for (const Value* output : last->outputs()) forms_.insert_or_assign(output, reader.find(output));
    }
    if (node != place_) return;
    for (const Value* value : scope_) here.insert_or_assign(value, reader.find(value));
  };
  reader.read();
  for (Value* value : scope_) {
    auto found = here.find(value);
    if (found != here.end()) bring(value, found->second);
  }
}

void Scene::bring(Value* value, const Form& form) {
  forms_.insert_or_assign(value, form);
  if (value->type()->kind() == c10::TypeKind::IntType && value->node()->kind() != prim::Constant) {
    integers_.push_back(value);
  }
  bool usable = value->type()->kind() == c10::TypeKind::TensorType && form.isTensor() && form.known;
  if (!usable) return;
  Operand operand = form.operand;
  operand.value = value;
  operand.used = value->hasUses();
  bool refused = form.hidden_view || form.leaf || form.sibling;
  operand.writable = !form.frozen && !form.repeated && !(operand.requires_grad && refused);
  tensors_.push_back(std::move(operand));
}

Value* Scene::constant(const c10::IValue& value) {
  torch::jit::Graph& graph = *case_.graph;
  Node* node = *graph.block()->nodes().begin();
  for (; node->kind() == prim::Constant; node = node->next()) {
    std::optional<c10::IValue> known = torch::jit::toIValue(node->output());
    if (known && sameConstant(*known, value)) return node->output();
  }
  torch::jit::WithInsertPoint front(node);
  return graph.insertConstant(value);
}

bool Scene::roomForInput() const { return case_.graph->inputs().size() < mutate_limits::max_inputs; }

Value* Scene::addInput(const std::vector<InputSpec>& per_run, const c10::TypePtr& type) {
  Value* value = case_.graph->addInput();
  value->setType(type);
  for (size_t i = 0; i < case_.runs.size(); ++i) case_.runs[i].inputs.push_back(per_run[i]);
  return value;
}

std::optional<size_t> Scene::make(const TensorWish& wish) {
  if (!roomForInput()) return std::nullopt;
  InputSpec spec = drawTensorSpec(choices_, swarm_, style_, wish);
  Value* value = addInput(std::vector<InputSpec>(case_.runs.size(), spec), c10::TensorType::get());
  bring(value, tensorInputForm(spec));
  return tensors_.size() - 1;
}

Value* Scene::list(const std::vector<Value*>& elements) {
  Node* node = case_.graph->create(prim::ListConstruct, elements, 1);
  node->output()->setType(c10::ListType::ofTensors());
  node->insertBefore(place_);
  return node->output();
}

const Form& Scene::formOf(const Value* value) const {
  static const Form nothing;
  auto found = forms_.find(value);
  return found == forms_.end() ? nothing : found->second;
}

std::vector<Value*> Scene::standIns(const Value* value) const {
  std::vector<Value*> found;
  for (Value* other : scope_) {
    if (other == value || *other->type() != *value->type()) continue;
    bool tensor = value->type()->kind() == c10::TypeKind::TensorType;
    if (!tensor || formOf(other).sameShape(formOf(value))) found.push_back(other);
  }
  return found;
}

}  // namespace faultline
