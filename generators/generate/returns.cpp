#include <algorithm>

#include "generators/generate/grow.h"
#include "generators/ops/limits.h"

namespace faultline {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace aten = torch::jit::aten;

namespace {

// What no op used, newest first, those with a gradient before the others.
std::vector<Operand> looseEnds(const ProgramBuilder& program) {
  std::vector<Operand> loose;
  const std::vector<Operand>& tensors = program.tensors();
  for (bool with_gradient : {true, false}) {
    for (size_t i = tensors.size(); i-- > 0;) {
      if (!tensors[i].usable) continue;
      bool made_here = !isGraphInput(tensors[i].value) && tensors[i].value->node()->kind() != prim::Constant;
      if (made_here && !tensors[i].used && tensors[i].requires_grad == with_gradient)
        loose.push_back(tensors[i]);
    }
  }
  return loose;
}

Value* sumUp(ProgramBuilder& program, const std::vector<Operand>& loose) {
  Value* total = nullptr;
  Value* none = program.constant(c10::IValue());
  Value* one = program.constant(int64_t{1});
  for (const Operand& operand : loose) {
    if (!operand.requires_grad) continue;
    Value* sum = program.add(aten::sum, {operand.value, none}, {c10::TensorType::get()})->output();
    total = total == nullptr ? sum
                             : program.add(aten::add, {total, sum, one}, {c10::TensorType::get()})->output();
  }
  return total;
}

void addPlumbing(ProgramBuilder& program, std::vector<Value*>& returns) {
  Choices& choices = program.choices();
  if (choices.flip(40)) {
    std::vector<Value*> inputs;
    for (const Operand& operand : program.tensors()) {
      if (operand.usable && isGraphInput(operand.value)) inputs.push_back(operand.value);
    }
    if (!inputs.empty()) returns.push_back(inputs[choices.below(inputs.size())]);
  }
  if (choices.flip(40)) returns.push_back(returns[choices.below(returns.size())]);
  if (choices.flip(30)) {
    if (std::optional<Operand> operand = pickTensor(program, program.tensors()))
      returns.push_back(operand->value);
  }
}

// The last few as one list or tuple: behind all plain tensors, so that these keep their numbers.
void wrapLast(ProgramBuilder& program, std::vector<Value*>& returns) {
  bool list = program.swarm().has(Feature::lists) && program.choices().flip(25);
  bool tuple = !list && program.swarm().has(Feature::tuples) && program.choices().flip(35);
  if (!list && !tuple) return;
  size_t count = std::min<size_t>(returns.size(), 1 + program.choices().below(2));
  std::vector<Value*> last(returns.end() - static_cast<std::ptrdiff_t>(count), returns.end());
  returns.resize(returns.size() - count);
  std::vector<c10::TypePtr> types(count, c10::TensorType::get());
  Node* node = list ? program.list(last)->node()
                    : program.add(prim::TupleConstruct, last, {c10::TupleType::create(types)});
  returns.push_back(node->output());
}

}  // namespace

std::vector<Value*> chooseReturns(ProgramBuilder& program) {
  Choices::Span span(program.choices(), "returns");
  std::vector<Operand> loose = looseEnds(program);
  std::vector<Value*> returns;
  if (program.swarm().has(Feature::loss)) {
    if (Value* total = sumUp(program, loose)) returns.push_back(total);
  }
  if (returns.empty()) {
    size_t count = std::min(loose.size(), limits::max_returns);
    for (size_t i = 0; i < count; ++i) returns.push_back(loose[i].value);
  }
  if (returns.empty()) {
    std::optional<Operand> any = pickTensor(program, program.tensors());
    returns.push_back(any ? any->value : program.graph().inputs()[0]);
  }
  if (program.swarm().has(Feature::plumbing)) addPlumbing(program, returns);
  wrapLast(program, returns);
  return returns;
}

}  // namespace faultline
