#include <algorithm>

#include "generators/generate/grow.h"
#include "generators/ops/limits.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace aten = torch::jit::aten;

namespace {

InputSpec boolSpec(bool value) {
  InputSpec spec;
  spec.kind = InputSpec::Kind::Bool;
  spec.bool_value = value;
  return spec;
}

InputSpec intSpec(int64_t value) {
  InputSpec spec;
  spec.kind = InputSpec::Kind::Int;
  spec.int_value = value;
  return spec;
}

struct Condition {
  Value* value = nullptr;
  Value* optional = nullptr;  // is not None where the condition holds
  Range range;                // of its tensor
};

// Nothing that depends on a tensor's values: the generator does not look at them.
Condition drawCondition(ProgramBuilder& program) {
  Choices& choices = program.choices();
  std::vector<Value*> integers = program.integers();
  if (!integers.empty() && choices.flip(30)) {
    Value* limit = program.constant(choices.between(0, 2));
    Node* compare =
        program.add(aten::gt, {integers[choices.below(integers.size())], limit}, {c10::BoolType::get()});
    return {compare->output(), nullptr, {}};
  }
  std::vector<Value*> known;
  for (Value* input : program.graph().inputs()) {
    if (input->type()->kind() == c10::TypeKind::BoolType) known.push_back(input);
  }
  if (!known.empty() && (!program.roomForInput() || choices.flip(30))) {
    return {known[choices.below(known.size())], nullptr, {}};
  }
  if (!program.roomForInput()) return {};
  if (program.swarm().has(Feature::optionals) && choices.flip(50)) {
    InputSpec spec = drawTensorSpec(choices, program.swarm(), program.style(), {});
    Value* optional = program.addOptionalInput(spec);
    Node* present =
        program.add(aten::__isnot__, {optional, program.constant(c10::IValue())}, {c10::BoolType::get()});
    return {present->output(), optional, rangeOfInput(spec)};
  }
  return {program.addInput(boolSpec(choices.flip(50))), nullptr, {}};
}

bool sameForm(const Operand& a, const Operand& b) { return a.dtype == b.dtype && a.sizes == b.sizes; }

bool isIn(const Operand& operand, const Block* block) {
  return operand.value->node()->owningBlock() == block && !isGraphInput(operand.value);
}

// Values that the block made, or all when there is none.
std::vector<Operand> madeIn(const Block* block, const std::vector<Operand>& seen) {
  std::vector<Operand> made;
  for (const Operand& operand : seen) {
    if (isIn(operand, block)) made.push_back(operand);
  }
  return made.empty() ? seen : made;
}

std::vector<Operand> ofForm(const Operand& form, const std::vector<Operand>& from) {
  std::vector<Operand> fitting;
  for (const Operand& operand : from) {
    if (sameForm(form, operand)) fitting.push_back(operand);
  }
  return fitting;
}

}  // namespace

void growBranch(ProgramBuilder& program) {
  Choices::Span span(program.choices(), "branch");
  Condition condition = drawCondition(program);
  if (condition.value == nullptr) return;
  Node* branch = program.graph().create(prim::If, {condition.value}, 0);
  program.block()->appendNode(branch);

  Block* first = branch->addBlock();
  ProgramBuilder::Scope scope = program.open(branch, first);
  if (condition.optional != nullptr) {
    Node* cast = program.add(prim::unchecked_cast, {condition.optional}, {c10::TensorType::get()});
    program.bring(cast->output(), condition.range);
  }
  growBlock(program);
  std::vector<Operand> seen_first = program.leave(scope);
  Block* second = branch->addBlock();
  program.openNext(second);
  growBlock(program);
  std::vector<Operand> seen_second = program.leave(scope);

  std::vector<Range> ranges;
  for (int64_t outputs = program.choices().between(0, 2); outputs > 0; --outputs) {
    std::optional<Operand> a = pickTensor(program, madeIn(first, seen_first));
    if (!a) break;
    // Arms that give tensors of different forms are legal but end most of what could be done with the result.
    std::vector<Operand> partners = ofForm(*a, madeIn(second, seen_second));
    if (partners.empty()) partners = ofForm(*a, seen_second);
    if (partners.empty() && program.choices().flip(20)) partners = seen_second;
    std::optional<Operand> b = pickTensor(program, partners);
    if (!b) continue;
    first->registerOutput(a->value);
    second->registerOutput(b->value);
    branch->addOutput()->setType(c10::TensorType::get());
    ranges.push_back(joinRanges(a->range, b->range));
    program.markUsed(a->value);
    program.markUsed(b->value);
  }
  program.close();
  if (!program.execute(branch)) return;
  for (size_t i = 0; i < ranges.size(); ++i) program.bring(branch->output(i), ranges[i]);
}

void growLoop(ProgramBuilder& program) {
  Choices& choices = program.choices();
  Choices::Span span(choices, "loop");
  int64_t trips = choices.between(1, limits::max_trips);
  bool from_outside = program.roomForInput() && choices.flip(70);
  Value* count = from_outside ? program.addInput(intSpec(trips)) : program.constant(trips);
  Value* more = program.constant(true);
  std::vector<Value*> inputs = {count, more};
  std::vector<Operand> initial;
  for (int64_t carried = choices.between(0, 2); carried > 0; --carried) {
    std::optional<Operand> start = pickTensor(program, program.tensors());
    if (!start) break;
    initial.push_back(*start);
    inputs.push_back(start->value);
  }
  Node* loop = program.graph().create(prim::Loop, inputs, 0);
  program.block()->appendNode(loop);
  Block* body = loop->addBlock();
  body->addInput()->setType(c10::IntType::get());
  for (size_t i = 0; i < initial.size(); ++i) body->addInput()->setType(c10::TensorType::get());

  ProgramBuilder::Scope scope = program.open(loop, body);
  program.bringInteger(body->inputs()[0]);
  for (size_t i = 0; i < initial.size(); ++i) program.bring(body->inputs()[i + 1], initial[i].range);
  if (program.swarm().has(Feature::aliasing)) growAliases(program);  // of tensors from outside
  growBlock(program);
  std::vector<Operand> seen = program.leave(scope);

  std::vector<Range> ranges;
  body->registerOutput(more);
  for (size_t i = 0; i < initial.size(); ++i) {
    // The next trip must accept what this one gives.
    std::vector<Operand> next = ofForm(initial[i], madeIn(body, seen));
    std::optional<Operand> carried = pickTensor(program, next);
    body->registerOutput(carried ? carried->value : body->inputs()[i + 1]);
    loop->addOutput()->setType(c10::TensorType::get());
    Range range = initial[i].range;
    if (carried) {
      int growth = std::max(0, carried->range.magnitude - range.magnitude);
      range = joinRanges(range, carried->range);
      range.magnitude += growth * static_cast<int>(limits::max_trips - 1);
      if (range.isPositive()) range.sign = Range::Sign::NonNegative;
    }
    ranges.push_back(range);
    program.markUsed(initial[i].value);
  }
  program.close();
  if (!program.execute(loop)) return;
  for (size_t i = 0; i < ranges.size(); ++i) program.bring(loop->output(i), ranges[i]);
}

void growGradModeRegion(ProgramBuilder& program) {
  Choices::Span span(program.choices(), "grad_mode");
  // The caller's mode comes back, as after Python's `with torch.no_grad()`.
  Node* before = program.add(c10::Symbol::aten("is_grad_enabled"), {}, {c10::BoolType::get()});
  program.add(c10::Symbol::aten("set_grad_enabled"), {program.constant(program.choices().flip(20))}, {});
  program.refresh();
  growBlock(program);
  program.add(c10::Symbol::aten("set_grad_enabled"), {before->output()}, {});
  program.refresh();
}

}  // namespace faultline
