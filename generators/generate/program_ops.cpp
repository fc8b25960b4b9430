#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include "engine/support/check.h"
#include "generators/generate/program.h"
#include "generators/ops/limits.h"
#include "generators/ops/row_operator.h"
#include "generators/ops/rules.h"

namespace faultline {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

Value* ProgramBuilder::tryOp(const OpRow& row) {
  const RowOperator& row_operator = operatorOf(row);
  const c10::FunctionSchema& schema = row_operator.op->schema();
  std::optional<Operands> operands = findOperands(row, schema, *this);
  if (!operands) return nullptr;
  std::vector<Range> ranges;
  for (const Operand& operand : operands->tensors) ranges.push_back(operand.range);
  size_t elements = operands->tensors.empty() ? 0 : static_cast<size_t>(operands->tensors[0].elements());
  Range range = resultRange(row.result, ranges, elements);
  int limit = c10::elementSize(style_.dtype) < 4 ? limits::max_magnitude_half : limits::max_magnitude;
  if (range.magnitude > limit && !choices_.flip(limits::wild_percent)) return nullptr;

  Node* node = graph_->create(row_operator.kind, operands->arguments, schema.returns().size());
  for (size_t i = 0; i < node->outputs().size(); ++i) node->output(i)->setType(schema.returns()[i].type());
  block()->appendNode(node);
  execution_.setOperation(node, row_operator.op->getOperation(node));
  if (options_.before_op) {
    options_.before_op({row.name, choices_.tape(), [this] { return pendingCase(); }});
  }
  if (!executeRow(row, node)) return nullptr;
  for (const Operand& operand : operands->tensors) markUsed(operand.value);
  return bringResults(row, node, range);
}

bool ProgramBuilder::executeRow(const OpRow& row, Node* node) {
  bool kept = false;
  try {
    execution_.run(node);
    kept = fitsLimits(node);
    if (kept && row.mutates) kept = backwardRuns() || choices_.flip(limits::spoiled_percent);
  } catch (const std::exception&) {
    kept = false;
  }
  if (kept) return true;
  destroy(node);
  if (row.mutates) replay();
  return false;
}

bool ProgramBuilder::fitsLimits(const Node* node) const {
  for (const Value* output : node->outputs()) {
    const c10::IValue& value = execution_.get(output);
    if (!value.isTensor()) continue;
    if (value.toTensor().numel() > limits::max_elements) return false;
    if (static_cast<size_t>(value.toTensor().dim()) > limits::max_rank) return false;
  }
  return true;
}

Value* ProgramBuilder::bringResults(const OpRow& row, Node* node, const Range& range) {
  Value* first = nullptr;
  for (Value* output : node->outputs()) {
    const c10::IValue& value = execution_.get(output);
    if (value.isTensorList()) {
      std::vector<c10::TypePtr> types(value.toListRef().size(), c10::TensorType::get());
      if (types.empty()) continue;
      Node* unpack = add(prim::ListUnpack, {output}, types);
      for (Value* element : unpack->outputs()) bring(element, range);
      if (first == nullptr) first = unpack->output(0);
    } else if (value.isTensor()) {
      bring(output, range);
      if (first == nullptr) first = output;
    }
  }
  if (row.mutates) {
    writes_ = true;
    spoilRanges(node->input(0), range);
    refresh();
  }
  return first;
}

void ProgramBuilder::spoilRanges(const Value* target, const Range& range) {
  at::Tensor written = tensorOf(target);
  for (Operand& operand : live_) {
    if (tensorOf(operand.value).is_alias_of(written)) operand.range = joinRanges(operand.range, range);
  }
}

bool ProgramBuilder::backwardRuns() const {
  torch::autograd::edge_list roots, inputs;
  torch::autograd::variable_list seeds;
  for (const Operand& operand : live_) {
    at::Tensor tensor = tensorOf(operand.value);
    if (!operand.usable || !tensor.requires_grad()) continue;
    if (isGraphInput(operand.value)) inputs.push_back(torch::autograd::impl::gradient_edge(tensor));
    if (tensor.is_leaf()) continue;
    roots.push_back(torch::autograd::impl::gradient_edge(tensor));
    seeds.push_back(at::ones_like(tensor));
  }
  if (roots.empty() || inputs.empty()) return true;
  try {
    torch::autograd::Engine::get_default_engine().execute(roots, seeds, /*keep_graph=*/true,
                                                          /*create_graph=*/false,
                                                          /*accumulate_grad=*/false, inputs);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace faultline
