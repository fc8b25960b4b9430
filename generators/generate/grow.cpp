#include "generators/generate/grow.h"

#include <algorithm>

#include "generators/ops/limits.h"

namespace faultline {

namespace {

struct Step {
  Feature feature;
  uint32_t weight;
  bool opens_block;
  void (*grow)(ProgramBuilder& program);
};

void growOp(ProgramBuilder& program, const std::vector<uint32_t>& weights) {
  Choices::Span span(program.choices(), "op");
  const OpRow& row = opRows()[program.choices().weighted(weights)];
  // Where all weights are 0 the choice is none.
  if (weights[static_cast<size_t>(&row - opRows().data())] != 0) program.tryOp(row);
}

void growOp(ProgramBuilder& program) { growOp(program, program.swarm().weights); }

const std::vector<Step>& steps() {
  static const std::vector<Step> all = {
      {Feature::always, 100, false, growOp},
      {Feature::chains, 10, false, growChain},
      {Feature::branches, 12, true, growBranch},
      {Feature::loops, 9, true, growLoop},
      {Feature::no_grad, 6, false, growGradModeRegion},
      {Feature::lists, 5, false, growList},
      {Feature::tuples, 5, false, growTuple},
      {Feature::aliasing, 30, false, growAliases},
  };
  return all;
}

void growStep(ProgramBuilder& program) {
  std::vector<uint32_t> weights;
  for (const Step& step : steps()) {
    bool on = step.feature == Feature::always || program.swarm().has(step.feature);
    on = on && (!step.opens_block || program.depth() < limits::max_depth);
    weights.push_back(on ? step.weight : 0);
  }
  steps()[program.choices().weighted(weights)].grow(program);
}

// Each further step is a choice of its own and 0 ends it: dropping a step from a tape leaves the others as
// they were, and a tape that has run out ends the program.
bool goesOn(ProgramBuilder& program, uint32_t percent) {
  return program.choices().more() && program.nodes() < program.options().max_nodes &&
         (percent == 100 || program.choices().flip(percent)) && program.swarm().anyRow();
}

InputSpec drawContainer(ProgramBuilder& program, InputSpec::Kind kind) {
  InputSpec container;
  container.kind = kind;
  int64_t elements = program.choices().between(1, 2);
  for (int64_t i = 0; i < elements; ++i) {
    container.elements.push_back(drawTensorSpec(program.choices(), program.swarm(), program.style(), {}));
  }
  return container;
}

void addContainer(ProgramBuilder& program, InputSpec::Kind kind, c10::Symbol unpack) {
  InputSpec container = drawContainer(program, kind);
  torch::jit::Value* input = program.addInput(container);
  std::vector<c10::TypePtr> types(container.elements.size(), c10::TensorType::get());
  torch::jit::Node* node = program.add(unpack, {input}, types);
  for (size_t i = 0; i < types.size(); ++i) {
    program.bring(node->output(i), rangeOfInput(container.elements[i]));
  }
}

enum class Access : uint8_t { View, Write, Read };

// The case's own rows of which the first operand is viewed, written or only read.
std::vector<uint32_t> rowsFor(const ProgramBuilder& program, Access access) {
  std::vector<uint32_t> weights = program.swarm().weights;
  const std::vector<OpRow>& rows = opRows();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Access own = rows[i].mutates ? Access::Write : rows[i].view ? Access::View : Access::Read;
    if (own != access || (own != Access::Read && rows[i].family == "list")) weights[i] = 0;
  }
  return weights;
}

}  // namespace

std::optional<Operand> pickTensor(ProgramBuilder& program, const std::vector<Operand>& from) {
  std::vector<uint32_t> weights;
  bool any = false;
  // Newest first, as everywhere.
  for (size_t i = from.size(); i-- > 0;) {
    bool loose_end = from[i].requires_grad && !from[i].used;
    uint32_t weight = loose_end ? limits::loose_end_weight : limits::other_value_weight;
    weights.push_back(from[i].usable ? weight : 0);
    any = any || from[i].usable;
  }
  if (!any) return std::nullopt;
  return from[from.size() - 1 - program.choices().weighted(weights)];
}

void drawInputs(ProgramBuilder& program) {
  Choices& choices = program.choices();
  const Swarm& swarm = program.swarm();
  Choices::Span span(choices, "inputs");
  int64_t tensors = choices.between(1, 3);
  for (int64_t i = 0; i < tensors; ++i) {
    TensorWish wish;
    if (i > 0 && swarm.has(Feature::dtypes) && choices.flip(25)) {
      static const std::vector<at::ScalarType> dtypes = {at::kDouble, at::kLong, at::kComplexFloat, at::kBool,
                                                         at::kInt};
      wish.dtype = dtypes[choices.weighted({40, 20, 20, 10, 10})];
    }
    program.addInput(drawTensorSpec(choices, swarm, program.style(), wish));
  }
  if (swarm.has(Feature::shared_inputs)) {
    InputSpec shared;
    shared.kind = InputSpec::Kind::SameAs;
    shared.same_as = choices.below(static_cast<uint64_t>(tensors));
    program.addInput(shared);
  }
  if (swarm.has(Feature::lists) && choices.flip(30)) {
    addContainer(program, InputSpec::Kind::List, torch::jit::prim::ListUnpack);
  }
  if (swarm.has(Feature::tuples) && choices.flip(40)) {
    addContainer(program, InputSpec::Kind::Tuple, torch::jit::prim::TupleUnpack);
  }
}

void growProgram(ProgramBuilder& program) {
  const GenerateOptions& options = program.options();
  // The smaller of two: most cases short, a few long.
  uint64_t spread = options.max_nodes - options.min_nodes + 1;
  uint64_t extra = program.choices().below(spread);
  extra = std::min(extra, program.choices().below(spread));
  size_t goal = options.min_nodes + extra;
  // Steps that add nothing are possible in any number; a program that cannot grow must end all the same.
  for (size_t tries = 0; tries < 4 * options.max_nodes && program.nodes() < goal; ++tries) {
    Choices::Span span(program.choices(), "step");
    if (!goesOn(program, 100)) break;
    growStep(program);
  }
  // A subset of ops that cannot make as many: the others can. Each of these takes any tensor or makes an
  // input.
  for (size_t tries = 0; tries < 20 * options.min_nodes && program.nodes() < options.min_nodes; ++tries) {
    Choices::Span span(program.choices(), "step");
    if (!program.choices().more()) break;
    growOp(program, program.swarm().fill_weights);
  }
}

void growBlock(ProgramBuilder& program) {
  constexpr size_t most = 6;
  for (size_t i = 0; i < most; ++i) {
    Choices::Span span(program.choices(), "step");
    if (!goesOn(program, 75)) break;
    growStep(program);
  }
}

void growChain(ProgramBuilder& program) {
  Choices::Span span(program.choices(), "chain");
  if (program.tensors().empty()) return;
  // Five and more: libtorch's executor inlines what is shorter.
  int64_t length = program.choices().between(5, 9);
  program.prefer(program.tensors().back().value);
  for (int64_t i = 0; i < length && program.nodes() < program.options().max_nodes; ++i) {
    Choices::Span link(program.choices(), "op");
    const OpRow& row = opRows()[program.choices().weighted(program.swarm().chain_weights)];
    if (program.swarm().chain_weights[static_cast<size_t>(&row - opRows().data())] == 0) break;
    torch::jit::Value* result = program.tryOp(row);
    if (result != nullptr) program.prefer(result);
  }
  program.prefer(nullptr);
}

// One tensor, its views, and what is written into any of them, between reads of any of them.
void growAliases(ProgramBuilder& program) {
  Choices& choices = program.choices();
  Choices::Span span(choices, "aliases");
  // Rather one without a gradient: a write may give it one, and all that share its memory with it.
  std::vector<uint32_t> writable;
  for (const Operand& operand : program.tensors())
    writable.push_back(!operand.writable ? 0 : operand.requires_grad ? 1 : 3);
  if (std::count(writable.begin(), writable.end(), 0u) == static_cast<std::ptrdiff_t>(writable.size()))
    return;
  std::vector<const torch::jit::Value*> group = {program.tensors()[choices.weighted(writable)].value};
  const int64_t length = choices.between(3, 8);
  for (int64_t i = 0; i < length && program.nodes() < program.options().max_nodes; ++i) {
    Choices::Span link(choices, "op");
    // Read before anything is written: what was true then is what a write ends.
    const Access access = i == 0 ? Access::Read : static_cast<Access>(choices.weighted({3, 4, 3}));
    const std::vector<uint32_t> weights = rowsFor(program, access);
    program.prefer(group[choices.below(group.size())]);
    const size_t row = choices.weighted(weights);
    if (weights[row] == 0) continue;
    const torch::jit::Value* result = program.tryOp(opRows()[row]);
    if (result != nullptr && access != Access::Read) group.push_back(result);
  }
  program.prefer(nullptr);
}

}  // namespace faultline
