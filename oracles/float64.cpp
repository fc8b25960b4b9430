#include "oracles/float64.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

namespace faultline {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

std::optional<at::ScalarType> widened(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
    case at::kHalf:
    case at::kBFloat16:
      return at::kDouble;
    case at::kComplexFloat:
    case at::kComplexHalf:
      return at::kComplexDouble;
    default:
      return std::nullopt;
  }
}

bool widenSpec(InputSpec& spec) {
  bool changed = false;
  if (spec.kind == InputSpec::Kind::Tensor) {
    if (const auto wide = widened(spec.dtype)) {
      changeDtype(spec, *wide);
      changed = true;
    }
  }
  for (InputSpec& element : spec.elements) changed |= widenSpec(element);
  return changed;
}

// Arguments that are dtypes: an int by its schema name, since TorchScript has no type of its own for them.
bool isDtypeArgument(const std::string& name) { return name == "dtype"; }

void forgetType(Value* value) {
  if (value->type()->kind() == c10::TypeKind::TensorType) value->setType(c10::TensorType::get());
}

bool widenBlock(Block* block) {
  bool changed = false;
  for (Value* input : block->inputs()) forgetType(input);
  for (Node* node : block->nodes()) {
    for (Value* output : node->outputs()) forgetType(output);
    for (Block* inner : node->blocks()) changed |= widenBlock(inner);
    if (node->hasAttribute(torch::jit::attr::Subgraph)) {
      changed |= widenBlock(node->g(torch::jit::attr::Subgraph)->block());
    }
    if (node->kind() == torch::jit::prim::Constant) {
      const auto value = torch::jit::toIValue(node->output());
      if (!value || !value->isTensor() || !value->toTensor().defined()) continue;
      const at::Tensor& tensor = value->toTensor();
      if (const auto wide = widened(tensor.scalar_type())) {
        node->t_(torch::jit::attr::value, tensor.to(*wide));
        changed = true;
      }
      continue;
    }
    const auto* schema = node->maybeSchema();
    if (schema == nullptr) continue;
    for (size_t i = 0; i < schema->arguments().size() && i < node->inputs().size(); ++i) {
      if (!isDtypeArgument(schema->arguments()[i].name())) continue;
      const auto value = torch::jit::toIValue(node->inputs()[i]);
      if (!value || !value->isInt()) continue;
      const auto wide = widened(static_cast<at::ScalarType>(value->toInt()));
      if (!wide) continue;
      const torch::jit::WithInsertPoint here(node);
      node->replaceInput(i, node->owningGraph()->insertConstant(static_cast<int64_t>(*wide)));
      changed = true;
    }
  }
  return changed;
}

}  // namespace

Result<Case> toFloat64(const Case& c) {
  Case wide = cloneCase(c);
  bool changed = false;
  for (CaseRun& run : wide.runs) {
    for (InputSpec& input : run.inputs) changed |= widenSpec(input);
  }
  changed |= widenBlock(wide.graph->block());
  if (!changed) return fail(ErrorKind::Unsupported, "the case has no number to widen");
  return wide;
}

}  // namespace faultline
