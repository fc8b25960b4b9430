#include <algorithm>

#include <torch/csrc/jit/ir/constants.h>

#include "generators/mutate/mutate.h"

namespace faultline {

namespace {

bool isSmall(int64_t integer) {
  return integer >= -mutate_limits::max_integer && integer <= mutate_limits::max_integer;
}

bool isSmall(const c10::IValue& value) {
  if (value.isInt()) return isSmall(value.toInt());
  if (value.isIntList()) {
    std::vector<int64_t> integers = value.toIntVector();
    return std::all_of(integers.begin(), integers.end(), [](int64_t integer) { return isSmall(integer); });
  }
  return !value.isTensor() || !value.toTensor().defined() ||
         value.toTensor().numel() <= mutate_limits::max_elements;
}

bool isSmall(const torch::jit::Block* block) {
  for (const torch::jit::Node* node : block->nodes()) {
    for (const torch::jit::Value* output : node->outputs()) {
      if (node->kind() != torch::jit::prim::Constant) break;
      std::optional<c10::IValue> value = torch::jit::toIValue(output);
      // The end of a slice is written as the greatest integer.
      bool end = value && value->isInt() && value->toInt() == INT64_MAX;
      if (value && !end && !isSmall(*value)) return false;
    }
    for (const torch::jit::Block* inner : node->blocks()) {
      if (!isSmall(inner)) return false;
    }
    bool subgraph = node->hasAttribute(torch::jit::attr::Subgraph) &&
                    node->kindOf(torch::jit::attr::Subgraph) == torch::jit::AttributeKind::g;
    if (subgraph && !isSmall(node->g(torch::jit::attr::Subgraph)->block())) return false;
  }
  return true;
}

// Elements of a spec; more than there may be where it asks for anything large.
int64_t elementsAskedFor(const InputSpec& spec) {
  constexpr int64_t too_many = mutate_limits::max_elements + 1;
  if (!isSmall(spec.int_value) || !isSmall(spec.offset)) return too_many;
  int64_t count = spec.kind == InputSpec::Kind::Tensor ? 1 : 0;
  for (int64_t size : spec.sizes) count = std::min(count * std::min(size, too_many), too_many);
  for (int64_t stride : spec.strides.value_or(std::vector<int64_t>())) {
    if (!isSmall(stride)) return too_many;
  }
  for (const InputSpec& element : spec.elements)
    count = std::min(count + elementsAskedFor(element), too_many);
  return count;
}

}  // namespace

bool isSmallCase(const Case& c) {
  for (const CaseRun& run : c.runs) {
    int64_t elements = 0;
    for (const InputSpec& spec : run.inputs) elements += elementsAskedFor(spec);
    if (elements > mutate_limits::max_elements) return false;
  }
  return isSmall(c.graph->block());
}

}  // namespace faultline
