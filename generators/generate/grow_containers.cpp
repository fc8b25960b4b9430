#include "generators/generate/grow.h"
#include "generators/ops/limits.h"

namespace faultline {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace aten = torch::jit::aten;

namespace {

std::vector<Operand> pickSome(ProgramBuilder& program, int64_t most) {
  std::vector<Operand> picked;
  for (int64_t count = program.choices().between(1, most); count > 0; --count) {
    std::optional<Operand> operand = pickTensor(program, program.tensors());
    if (operand) picked.push_back(*operand);
  }
  return picked;
}

std::vector<Value*> valuesOf(const std::vector<Operand>& operands) {
  std::vector<Value*> values;
  for (const Operand& operand : operands) values.push_back(operand.value);
  return values;
}

}  // namespace

void growList(ProgramBuilder& program) {
  Choices::Span span(program.choices(), "list");
  std::vector<Operand> elements = pickSome(program, static_cast<int64_t>(limits::max_list));
  if (elements.empty()) return;
  Value* list = program.list(valuesOf(elements));
  if (program.choices().flip(30)) {
    if (std::optional<Operand> more = pickTensor(program, program.tensors())) elements.push_back(*more);
    program.add(aten::append, {list, elements.back().value}, {c10::ListType::ofTensors()});
  }
  if (program.choices().flip(50)) {
    size_t index = program.choices().below(elements.size());
    bool from_end = program.choices().flip(30);
    int64_t position = static_cast<int64_t>(index) - (from_end ? static_cast<int64_t>(elements.size()) : 0);
    Node* item = program.add(aten::__getitem__, {list, program.constant(position)}, {c10::TensorType::get()});
    program.bring(item->output(), elements[index].range);
    return;
  }
  std::vector<c10::TypePtr> types(elements.size(), c10::TensorType::get());
  Node* unpack = program.add(prim::ListUnpack, {list}, types);
  for (size_t i = 0; i < elements.size(); ++i) program.bring(unpack->output(i), elements[i].range);
}

void growTuple(ProgramBuilder& program) {
  Choices::Span span(program.choices(), "tuple");
  std::vector<Operand> elements = pickSome(program, 2);
  if (elements.empty()) return;
  std::vector<c10::TypePtr> types(elements.size(), c10::TensorType::get());
  Node* tuple = program.add(prim::TupleConstruct, valuesOf(elements), {c10::TupleType::create(types)});
  Node* unpack = program.add(prim::TupleUnpack, {tuple->output()}, types);
  for (size_t i = 0; i < elements.size(); ++i) program.bring(unpack->output(i), elements[i].range);
}

}  // namespace faultline
