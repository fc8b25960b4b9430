#include "oracles/precision.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

namespace faultline {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

using Change = std::optional<at::ScalarType> (*)(at::ScalarType);

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

std::optional<at::ScalarType> narrowed(at::ScalarType dtype) {
  if (dtype == at::kDouble) return at::kFloat;
  if (dtype == at::kComplexDouble) return at::kComplexFloat;
  return std::nullopt;
}

bool changeSpec(InputSpec& spec, Change other) {
  bool changed = false;
  if (spec.kind == InputSpec::Kind::Tensor) {
    if (const auto dtype = other(spec.dtype)) {
      changeDtype(spec, *dtype);
      changed = true;
    }
  }
  for (InputSpec& element : spec.elements) changed |= changeSpec(element, other);
  return changed;
}

// Arguments that are dtypes: an int by its schema name, since TorchScript has no type of its own for them.
bool isDtypeArgument(const std::string& name) { return name == "dtype"; }

void forgetType(Value* value) {
  if (value->type()->kind() == c10::TypeKind::TensorType) value->setType(c10::TensorType::get());
}

bool changeBlock(Block* block, Change other) {
  bool changed = false;
  for (Value* input : block->inputs()) forgetType(input);
  for (Node* node : block->nodes()) {
    for (Value* output : node->outputs()) forgetType(output);
    for (Block* inner : node->blocks()) changed |= changeBlock(inner, other);
    if (node->hasAttribute(torch::jit::attr::Subgraph)) {
      changed |= changeBlock(node->g(torch::jit::attr::Subgraph)->block(), other);
    }
    if (node->kind() == torch::jit::prim::Constant) {
      const auto value = torch::jit::toIValue(node->output());
      if (!value || !value->isTensor() || !value->toTensor().defined()) continue;
      const at::Tensor& tensor = value->toTensor();
      if (const auto dtype = other(tensor.scalar_type())) {
        node->t_(torch::jit::attr::value, tensor.to(*dtype));
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
      const auto dtype = other(static_cast<at::ScalarType>(value->toInt()));
      if (!dtype) continue;
      const torch::jit::WithInsertPoint here(node);
      node->replaceInput(i, node->owningGraph()->insertConstant(static_cast<int64_t>(*dtype)));
      changed = true;
    }
  }
  return changed;
}

Result<Case> inOther(const Case& c, Change other) {
  Case result = cloneCase(c);
  bool changed = false;
  for (CaseRun& run : result.runs) {
    for (InputSpec& input : run.inputs) changed |= changeSpec(input, other);
  }
  changed |= changeBlock(result.graph->block(), other);
  if (!changed) return fail(ErrorKind::Unsupported, "the case has no number of another precision");
  return result;
}

}  // namespace

Result<Case> toFloat64(const Case& c) { return inOther(c, widened); }
Result<Case> toFloat32(const Case& c) { return inOther(c, narrowed); }

}  // namespace faultline
