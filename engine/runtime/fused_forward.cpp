#include "engine/runtime/fused_forward.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <unordered_set>

#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/interpreter.h>

namespace faultline {

using torch::jit::Graph;
using torch::jit::Stack;
using torch::jit::Value;

namespace {

// One program is held to this many ops, and what it makes at a time with it.
constexpr size_t kMostOps = 1024;

int64_t steadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of the innermost fused forward that runs on this thread.
thread_local std::vector<int64_t>* piece_ends = nullptr;

c10::Symbol pieceEnds() {
  static const auto kind = c10::Symbol::fromQualString("faultline::piece_ends");
  return kind;
}

// Says in a fused forward that a piece has run. Anywhere else it does nothing.
const torch::jit::RegisterOperators registered_piece_ends({torch::jit::Operator(
    "faultline::piece_ends() -> ()",
    [](Stack&) {
      if (piece_ends) piece_ends->push_back(steadyNanoseconds());
    },
    c10::AliasAnalysisKind::CONSERVATIVE)});

template <class Call>
void forEachPart(const PlacedPiece& piece, Call&& call) {
  for (const PlacedSegment& segment : piece.segments) {
    for (const PlacedPart& part : segment.parts) call(part);
  }
}

size_t opsOf(const PlacedPiece& piece) {
  size_t ops = 0;
  forEachPart(piece, [&](const PlacedPart& part) {
    const auto nodes = part.part->graph()->nodes();
    ops += static_cast<size_t>(std::distance(nodes.begin(), nodes.end()));
  });
  return ops;
}

bool mayShareForward(const PlacedPiece& piece) {
  bool may = std::all_of(piece.segments.begin(), piece.segments.end(),
                         [](const PlacedSegment& segment) { return segment.as_written != nullptr; });
  forEachPart(piece, [&](const PlacedPart& placed) {
    const RunnablePart& part = *placed.part;
    may = may && part.compiled() && part.expectedVariant() && part.guard() != Guard::None &&
          !part.mayPassThrough();
  });
  return may;
}

}  // namespace

void fuseForwards(const std::vector<PlacedPiece>& placed, const std::vector<size_t>& run,
                  FusedForwards& fused) {
  for (size_t i = 0; i < run.size();) {
    size_t end = i, parts = 0;
    for (size_t ops = 0; end < run.size() && run[end] == run[i] + (end - i); ++end) {
      const PlacedPiece& piece = placed[run[end]];
      ops += opsOf(piece);
      if (ops > kMostOps || !mayShareForward(piece)) break;
      forEachPart(piece, [&](const PlacedPart&) { ++parts; });
    }
    if (parts > 1) {
      fused.emplace(std::piecewise_construct, std::forward_as_tuple(run[i]),
                    std::forward_as_tuple(placed, run[i], run[i] + (end - i)));
    }
    i = std::max(end, i + 1);
  }
}

struct FusedForward::Program {
  InputMask requires_grad;  // as `inputs_`
  struct Member {
    InputMask requires_grad;
    std::shared_ptr<const PartVariant> variant;
  };
  std::vector<Member> members;  // empty: a part is not differentiated for such inputs
  size_t outputs = 0;
  torch::jit::Code code;
};

FusedForward::FusedForward(const std::vector<PlacedPiece>& placed, size_t first, size_t end)
    : placed_(placed), first_(first), end_(end) {
  InputMask expected;
  std::unordered_set<Register> known;
  for (size_t k = first; k < end; ++k) {
    forEachPart(placed[k], [&](const PlacedPart& part) {
      for (size_t i = 0; i < part.inputs.size(); ++i) {
        if (!known.insert(part.inputs[i]).second) continue;
        inputs_.push_back({part.inputs[i], c10::unshapedType(part.part->graph()->inputs()[i]->type())});
        expected.push_back(part.part->expected()[i]);
      }
      known.insert(part.outputs.begin(), part.outputs.end());
    });
  }
  programFor(expected);
}

FusedForward::~FusedForward() {
  for (const auto& program : programs_) delete program.load();
}

std::unique_ptr<const FusedForward::Program> FusedForward::makeProgram(const InputMask& requires_grad) const {
  struct Known {
    Value* value = nullptr;
    bool requires_grad = false;
  };
  auto program = std::make_unique<Program>();
  program->requires_grad = requires_grad;
  auto graph = std::make_shared<Graph>();
  std::unordered_map<Register, Known> known;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    known[inputs_[i].at] = {graph->addInput()->setType(inputs_[i].type), requires_grad[i]};
  }
  bool differentiated = true;
  for (size_t k = first_; k < end_ && differentiated; ++k) {
    forEachPart(placed_[k], [&](const PlacedPart& placed) {
      if (!differentiated) return;
      Program::Member member;
      std::vector<Value*> operands;
      for (Register at : placed.inputs) {
        member.requires_grad.push_back(known.at(at).requires_grad);
        operands.push_back(known.at(at).value);
      }
      member.variant = placed.part->variantThatRuns(member.requires_grad);
      differentiated = member.variant != nullptr;
      if (!differentiated) return;
      const PieceGradient& gradient = member.variant->gradient;
      const auto results = torch::jit::insertGraph(*graph, *gradient.forward, operands);
      for (Value* result : results) graph->registerOutput(result);
      for (size_t o = 0; o < placed.outputs.size(); ++o) known[placed.outputs[o]] = {results[o], false};
      for (size_t v : member.variant->real_vjps) {
        known[placed.outputs[gradient.vjp_outputs[v]]].requires_grad = true;
      }
      program->members.push_back(std::move(member));
    });
    graph->insertNode(graph->create(pieceEnds(), {}, 0));
  }
  if (!differentiated) {
    program->members.clear();
    return program;
  }
  program->outputs = graph->outputs().size();
  program->code = torch::jit::Code(graph, "pieces");
  return program;
}

const FusedForward::Program* FusedForward::programFor(const InputMask& requires_grad) const {
  auto find = [&](size_t& free) -> const Program* {
    for (free = 0; free < most_programs; ++free) {
      const Program* program = programs_[free].load(std::memory_order_acquire);
      if (!program || program->requires_grad == requires_grad) return program;
    }
    return nullptr;
  };
  size_t free = 0;
  if (const Program* program = find(free); program || free == most_programs) return program;
  const std::lock_guard<std::mutex> lock(adding_);
  if (const Program* program = find(free); program || free == most_programs) return program;
  programs_[free].store(makeProgram(requires_grad).release(), std::memory_order_release);
  return programs_[free].load(std::memory_order_relaxed);
}

FusedForward::Results FusedForward::run(const std::vector<c10::IValue>& registers) const {
  Results none;
  if (dismissed_ || !RunnablePart::modesFit()) return none;
  InputMask requires_grad(inputs_.size(), false);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].type->kind() != c10::TypeKind::TensorType) continue;
    const c10::IValue& value = registers[inputs_[i].at];
    if (!value.isTensor() || !RunnablePart::isFitInput(value.toTensor())) {
      return none;
    }
    requires_grad[i] = value.toTensor().requires_grad();
  }
  const Program* program = programFor(requires_grad);
  if (!program || program->members.empty()) return none;
  Results results;
  results.made_by_ = this;
  results.program_ = program;
  results.values_.reserve(std::max(inputs_.size(), program->outputs));
  for (const Input& input : inputs_) results.values_.push_back(registers[input.at]);
  results.times_.reserve(end_ - first_ + 1);
  results.times_.push_back(steadyNanoseconds());
  const at::NoGradGuard no_grad;
  std::vector<int64_t>* const outer = std::exchange(piece_ends, &results.times_);
  bool ran = true;
  try {
    torch::jit::InterpreterState(program->code).run(results.values_);
  } catch (...) {
    ran = false;  // whatever it is, the part that throws it throws it again
  }
  piece_ends = outer;
  return ran ? std::move(results) : std::move(none);
}

std::optional<compat::NodePtr> FusedForward::Results::give(const RunnablePart& part, Stack& stack,
                                                           const std::shared_ptr<PieceRun>& piece_run) {
  const Program::Member& member = program_->members[parts_];
  if (!part.fits(member.requires_grad, stack)) {
    made_by_->dismissed_ = true;
    return std::nullopt;
  }
  compat::NodePtr node = part.runAfterForward(member.variant, stack, values_.data() + taken_, piece_run);
  ++parts_;
  taken_ += member.variant->gradient.forward->outputs().size();
  return node;
}

}  // namespace faultline
