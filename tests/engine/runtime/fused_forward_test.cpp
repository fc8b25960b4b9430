// Pieces that follow one another run forward as one program, and nobody can tell but by the clock.
#include <gtest/gtest.h>

#include "engine/runtime/compiled_graph.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

// Two layers as two pieces over registers: x, v, w come in as 0, 1, 2.
struct TwoPieces {
  std::vector<PlacedPiece> placed;

  explicit TwoPieces(const std::string& second = "aten::tanh(%m)", Guard guard = Guard::Variants,
                     bool repeatable = true) {
    add("aten::relu(%m)", {0, 1}, 3, guard, true);
    add(second, {3, 2}, 4, guard, repeatable);
  }

  FusedForwards fuse(const std::vector<size_t>& run = {0, 1}) const {
    FusedForwards fused;
    fuseForwards(placed, run, fused);
    return fused;
  }

 private:
  void add(const std::string& op, const std::vector<Register>& inputs, Register output, Guard guard,
           bool repeatable) {
    const auto graph = parse(fmt::format(R"(
graph(%a : Tensor, %w : Tensor):
  %m : Tensor = aten::mm(%a, %w)
  %r : Tensor = {}
  return (%r))",
                                         op));
    PlacedSegment segment;
    segment.parts.push_back({std::make_shared<const RunnablePart>(graph, true, InputMask{true, true}, guard),
                             inputs,
                             {output},
                             {}});
    if (repeatable) segment.as_written = [graph] { return graph; };
    placed.push_back({{std::move(segment)}, {output}, {}, {}});
  }
};

std::vector<c10::IValue> registersOf(const at::Tensor& x) {
  return {x, leaf({3, 3}, 2), leaf({3, 3}, 3), c10::IValue(), c10::IValue()};
}

TEST(FusedForward, GivesEachPartWhatItsOwnForwardWould) {
  const TwoPieces two;
  const FusedForwards fused = two.fuse();
  ASSERT_EQ(fused.size(), 1u);
  // Made ahead for inputs that require grad, and on its first run for one that does not.
  for (bool requires_grad : {true, false}) {
    SCOPED_TRACE(requires_grad);
    auto registers = registersOf(values({3, 3}, 1).set_requires_grad(requires_grad));
    auto results = fused.at(0).run(registers);
    ASSERT_TRUE(results.any());
    EXPECT_TRUE(results.goesOnWith(1));
    EXPECT_FALSE(results.goesOnWith(0));
    EXPECT_FALSE(results.goesOnWith(2));
    EXPECT_LE(results.begin(0), results.end(0));
    EXPECT_EQ(results.end(0), results.begin(1));
    EXPECT_LE(results.begin(1), results.end(1));
    const auto run = std::make_shared<PieceRun>(std::make_shared<Timeline>(), 0, 0);
    for (size_t k : {0, 1}) {
      const PlacedPart& placed = two.placed[k].segments[0].parts[0];
      torch::jit::Stack stack, alone;
      for (Register at : placed.inputs) stack.push_back(registers[at]);
      alone = stack;
      const auto given = results.give(*placed.part, stack, run);
      ASSERT_TRUE(given);
      const compat::NodePtr& node = *given;
      ASSERT_NE(node, nullptr);
      const compat::NodePtr other = placed.part->run(alone, run);
      EXPECT_TRUE(at::equal(stack[0].toTensor(), alone[0].toTensor()));
      EXPECT_EQ(stack[0].toTensor().grad_fn(), node);
      EXPECT_EQ(node->num_outputs(), other->num_outputs());
      registers[placed.outputs[0]] = stack[0];
    }
    registers[4].toTensor().sum().backward();
    EXPECT_TRUE(registers[1].toTensor().grad().defined());
  }
}

TEST(FusedForward, IsOfPiecesThatAreCompiledRepeatableAndDirectlyBehindOneAnother) {
  EXPECT_EQ(TwoPieces().fuse().size(), 1u);
  EXPECT_EQ(TwoPieces("aten::tanh(%m)", Guard::Variants, /*repeatable=*/false).fuse().size(), 0u);
  EXPECT_EQ(TwoPieces("aten::tanh(%m)", Guard::None).fuse().size(), 0u);
  const TwoPieces passes("aten::type_as(%m, %a)");
  EXPECT_TRUE(passes.placed[1].segments[0].parts[0].part->compiled());
  EXPECT_EQ(passes.fuse().size(), 0u);  // gives back its argument
  EXPECT_EQ(TwoPieces().fuse({0}).size(), 0u);
  EXPECT_EQ(TwoPieces().fuse({1, 0}).size(), 0u);
}

TEST(FusedForward, LeavesTheForwardToThePartsWhereItsInputsDoNotFit) {
  const TwoPieces two;
  const FusedForwards fused = two.fuse();
  const FusedForward& forward = fused.at(0);
  EXPECT_TRUE(forward.run(registersOf(leaf({3, 3}, 1))).any());
  auto frozen = registersOf(values({3, 3}, 1));
  frozen[1] = values({3, 3}, 2);  // nothing in the first piece requires grad
  EXPECT_FALSE(forward.run(frozen).any());
  auto no_tensor = registersOf(leaf({3, 3}, 1));
  no_tensor[2] = c10::IValue();
  EXPECT_FALSE(forward.run(no_tensor).any());
  auto throws = registersOf(leaf({3, 4}, 1));
  EXPECT_FALSE(forward.run(throws).any());
  {
    const at::NoGradGuard no_grad;
    EXPECT_FALSE(forward.run(registersOf(leaf({3, 3}, 1))).any());
  }
  EXPECT_TRUE(forward.run(registersOf(leaf({3, 3}, 1))).any());
  // For other flags than those that code was guarded for, the ops are to run as written.
  const TwoPieces guarded("aten::tanh(%m)", Guard::Flags);
  const FusedForwards strict = guarded.fuse();
  ASSERT_EQ(strict.size(), 1u);
  EXPECT_TRUE(strict.at(0).run(registersOf(leaf({3, 3}, 1))).any());
  EXPECT_FALSE(strict.at(0).run(registersOf(values({3, 3}, 1))).any());
}

TEST(FusedForward, IsNotTriedAgainWhereOnlyRunningTellsThatItDoesNotFit) {
  const TwoPieces two;
  const FusedForwards fused = two.fuse();
  auto registers = registersOf(leaf({3, 3}, 1));
  auto results = fused.at(0).run(registers);
  ASSERT_TRUE(results.any());
  torch::jit::Stack other = {values({3, 3}, 1), registers[1]};  // another flag than was run for
  EXPECT_FALSE(results.give(*two.placed[0].segments[0].parts[0].part, other, nullptr));
  EXPECT_EQ(other.size(), 2u);
  EXPECT_FALSE(fused.at(0).run(registers).any());
}

// Four pieces, of which the third makes doubles of floats: it is not what formulas were checked for.
TEST(FusedForward, AProgramWhoseDtypesChangeMeansWhatItDid) {
  const auto graph = parse(R"(
graph(%x : Tensor, %w : Tensor):
  %seven : int = prim::Constant[value=7]()
  %false : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::tanh(%a)
  %c : Tensor = aten::to(%b, %seven, %false, %false, %none)
  %d : Tensor = aten::mul(%c, %c)
  %e : Tensor = aten::tanh(%d)
  return (%e))");
  const auto plan = planBreaks(*graph, BreakPolicy::every(1));
  ASSERT_TRUE(plan);
  const auto compiled = compile(graph, *plan);
  ASSERT_TRUE(compiled);
  auto inputs = [] { return torch::jit::Stack{leaf({3, 3}, 1), leaf({3, 3}, 2)}; };
  for (int run = 0; run < 3; ++run) {
    for (Backward::Kind kind : {Backward::Kind::All, Backward::Kind::Double}) {
      EXPECT_EQ(difference(observe(interpreter(graph), inputs, {kind, 0}),
                           observe(lean(*compiled), inputs, {kind, 0})),
                "");
    }
  }
}

constexpr const char* two_layers = R"(
graph(%x : Tensor, %v : Tensor, %w : Tensor):
  %a : Tensor = aten::mm(%x, %v)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::mm(%b, %w)
  return (%c))";

TEST(FusedForward, ForwardsOfPiecesStandInTheTimelineInTheirOrder) {
  const auto graph = parse(two_layers);
  const auto compiled = compile(graph, *planBreaks(*graph, BreakPolicy::every(1)));
  ASSERT_TRUE(compiled);
  for (int run = 0; run < 2; ++run) {
    compiled->timeline().clear();
    torch::jit::Stack stack = {values({3, 3}, 1), leaf({3, 3}, 2), leaf({3, 3}, 3)};
    compiled->run(stack);
    const auto events = compiled->timeline().events();
    ASSERT_EQ(events.size(), 3u);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(events[k].what, TimelineEvent::What::Forward);
      EXPECT_EQ(events[k].piece, static_cast<int>(k));
      EXPECT_EQ(events[k].forward, events[k].seq);
      EXPECT_LE(events[k].begin_us, events[k].end_us);
      EXPECT_LE(k ? events[k - 1].end_us : 0, events[k].begin_us);
    }
  }
}

// The second piece throws: what the caller sees is what the op throws, from where it stands.
TEST(FusedForward, WhatAPieceThrowsIsThrownOnce) {
  const auto graph = parse(two_layers);
  const auto compiled = compile(graph, *planBreaks(*graph, BreakPolicy::every(2)));
  ASSERT_TRUE(compiled);
  auto inputs = [] { return torch::jit::Stack{leaf({3, 3}, 1), leaf({3, 3}, 2), leaf({4, 3}, 3)}; };
  EXPECT_EQ(difference(observe(interpreter(graph), inputs, {Backward::Kind::All, 0}),
                       observe(lean(*compiled), inputs, {Backward::Kind::All, 0})),
            "");
  torch::jit::Stack fits = {leaf({3, 3}, 1), leaf({3, 3}, 2), leaf({3, 3}, 3)};
  compiled->run(fits);
  EXPECT_TRUE(fits[0].toTensor().requires_grad());
}

}  // namespace
}  // namespace faultline::test
