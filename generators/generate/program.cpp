#include "generators/generate/program.h"

#include "engine/support/check.h"
#include "generators/ops/limits.h"
#include "generators/ops/row_operator.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

// Whether any use would throw: a view of a base that was written to since, made where nothing could record
// how. grad_fn() would say, but it also gives a stale view a node of its own, after which the program under
// construction is not in the state in which it runs later.
bool refusesUse(const at::Tensor& tensor) {
  const auto* view = torch::autograd::impl::get_view_autograd_meta(tensor);
  if (!view || !view->has_bw_view() || view->get_attr_version() == tensor._version()) return false;
  if (!view->grad_fn_ && !tensor._base().requires_grad()) return false;
  return view->get_creation_meta() != torch::autograd::CreationMeta::DEFAULT;
}

}  // namespace

ProgramBuilder::ProgramBuilder(Choices& choices, uint64_t seed, const Swarm& swarm,
                               const GenerateOptions& options)
    : choices_(choices),
      seed_(seed),
      swarm_(swarm),
      options_(options),
      graph_(std::make_shared<torch::jit::Graph>()),
      style_(drawInputStyle(choices, swarm)) {}

Block* ProgramBuilder::block() { return open_.empty() ? graph_->block() : open_.back().block; }

Value* ProgramBuilder::constant(const c10::IValue& value) {
  for (const auto& [known, at] : constants_) {
    if (sameConstant(known, value)) return at;
  }
  Value* inserted;
  {
    // All in front, so that they are in scope wherever the program grows.
    torch::jit::WithInsertPoint front(last_constant_ != nullptr ? last_constant_->next()
                                                                : *graph_->block()->nodes().begin());
    inserted = graph_->insertConstant(value);
  }
  last_constant_ = inserted->node();
  constants_.emplace_back(value, inserted);
  execution_.set(inserted, value);
  return inserted;
}

std::optional<size_t> ProgramBuilder::makeConstant(const TensorWish& wish) {
  InputSpec spec = drawTensorSpec(choices_, swarm_, style_, wish);
  spec.requires_grad = false;
  spec.leaf = true;
  spec.strides.reset();
  spec.offset = 0;
  // Text of a constant holds its elements; short ones keep cases readable.
  if (wish.writable || c10::elementSize(spec.dtype) < 4) return std::nullopt;
  auto made = makeInput(spec, mixSeed(seed_, 1000 + frozen_.size()));
  FAULTLINE_CHECK(made.has_value(), made ? "" : made.error().str());
  frozen_.push_back(made->toTensor());
  bring(constant(*made), rangeOfInput(spec));
  return live_.size() - 1;
}

std::optional<size_t> ProgramBuilder::make(const TensorWish& wish) {
  if (swarm_.has(Feature::constants) && choices_.flip(20)) return makeConstant(wish);
  if (!roomForInput()) return std::nullopt;
  addInput(drawTensorSpec(choices_, swarm_, style_, wish));
  return live_.size() - 1;
}

bool ProgramBuilder::roomForInput() const { return inputs_.size() < limits::max_inputs; }

Value* ProgramBuilder::list(const std::vector<Value*>& elements) {
  Node* node = add(prim::ListConstruct, elements, {c10::ListType::ofTensors()});
  return node->output();
}

Value* ProgramBuilder::addInput(const InputSpec& spec) {
  size_t position = inputs_.size();
  Value* value = graph_->addInput("in" + std::to_string(position));
  value->setType(inputType(spec.kind == InputSpec::Kind::SameAs ? inputs_[spec.same_as] : spec));
  inputs_.push_back(spec);
  std::vector<c10::IValue> earlier;
  for (size_t i = 0; i < position; ++i) earlier.push_back(execution_.get(graph_->inputs()[i]));
  auto made = makeInput(spec, mixSeed(seed_, position), earlier);
  FAULTLINE_CHECK(made.has_value(), made ? "" : made.error().str());
  execution_.set(value, *made);
  if (spec.kind == InputSpec::Kind::Tensor) bring(value, rangeOfInput(spec));
  if (spec.kind == InputSpec::Kind::SameAs) bring(value, rangeOfInput(inputs_[spec.same_as]));
  if (spec.kind == InputSpec::Kind::Int) bringInteger(value);
  return value;
}

Value* ProgramBuilder::addOptionalInput(const InputSpec& spec) {
  Value* value = addInput(spec);
  value->setType(c10::OptionalType::ofTensor());
  live_.pop_back();
  return value;
}

Node* ProgramBuilder::add(c10::Symbol kind, const std::vector<Value*>& inputs,
                          const std::vector<c10::TypePtr>& results) {
  Node* node = graph_->create(kind, inputs, results.size());
  for (size_t i = 0; i < results.size(); ++i) node->output(i)->setType(results[i]);
  block()->appendNode(node);
  execution_.run(node);
  for (Value* input : inputs) markUsed(input);
  return node;
}

bool ProgramBuilder::isWritable(const at::Tensor& tensor) const {
  for (const at::Tensor& constant : frozen_) {
    if (tensor.is_alias_of(constant)) return false;
  }
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) return false;
  }
  if (!c10::GradMode::is_enabled() || !tensor.requires_grad()) return true;
  if (tensor.is_leaf()) return false;
  return !tensor.is_view() || !tensor._base().is_leaf();
}

Operand ProgramBuilder::describe(Value* value, const Range& range) const {
  at::Tensor tensor = tensorOf(value);
  Operand operand;
  operand.value = value;
  operand.dtype = tensor.scalar_type();
  operand.sizes = tensor.sizes().vec();
  operand.strides = tensor.strides().vec();
  operand.contiguous = tensor.is_contiguous();
  operand.usable = !refusesUse(tensor);
  operand.writable = operand.usable && isWritable(tensor);
  operand.requires_grad = tensor.requires_grad();
  operand.range = range;
  return operand;
}

void ProgramBuilder::bring(Value* tensor, const Range& range) { live_.push_back(describe(tensor, range)); }

void ProgramBuilder::refresh() {
  for (Operand& operand : live_) {
    bool used = operand.used;
    operand = describe(operand.value, operand.range);
    operand.used = used;
  }
}

void ProgramBuilder::markUsed(const Value* value) {
  for (Operand& operand : live_) {
    if (operand.value == value) operand.used = true;
  }
}

}  // namespace faultline
