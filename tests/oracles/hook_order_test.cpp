// hook_order on written traces: counts, arguments, and the promise about pieces.
#include <gtest/gtest.h>

#include "oracles/oracle.h"
#include "tests/oracles/written.h"

namespace faultline {
namespace {

using namespace written;
using Kind = HookTrace::Kind;

// in1 is used in piece 0, in2 in piece 1, in3 in both.
Case twoPieces() {
  Case c = caseOf(R"(graph(%x : Tensor, %v : Tensor, %w : Tensor, %u : Tensor):
  %a : Tensor = aten::mul(%x, %v)
  %b : Tensor = aten::mul(%a, %u)
  %r : Tensor = aten::relu(%b)
  %c : Tensor = aten::mul(%r, %w)
  %d : Tensor = aten::mul(%c, %u)
  return (%d)
)",
                  {input({2}, false), input({2}), input({2}), input({2})});
  c.plan.hooks = {{HookKind::Tensor, 1, ""},
                  {HookKind::Tensor, 2, ""},
                  {HookKind::Tensor, 3, ""},
                  {HookKind::Tensor, 0, "relu"}};
  return c;
}

std::vector<PieceTrace> pieces() {
  return {{{"mul", "mul_1", "relu"}, true, ""}, {{"mul_2", "mul_3"}, true, ""}};
}

// One run whose backward logs `order`: names of inputs and seams, "piece1".
Trace logged(const std::vector<std::string>& order, bool broken = true) {
  Trace t;
  t.runs.push_back(run({withGrad(tensor("out0", {1}))}, {tensor("in1", {1})}));
  uint64_t seq = 0;
  for (const std::string& on : order) {
    t.runs[0].phases[1].hooks.push_back(
        hook(on.rfind("piece", 0) == 0 ? Kind::PieceBackward : Kind::Tensor, on, seq++));
  }
  if (broken) t.pieces = pieces();
  return t;
}

Trace reference() { return logged({"in2", "relu", "in1", "in3"}, false); }

std::string judged(const Trace& expected, const Trace& lane, bool strict = false) {
  static const Case c = twoPieces();
  OracleOptions options;
  options.strict = strict;
  const Verdict v = findOracle("hook_order")->make(options)->judge(c, expected, lane);
  return v.failed() ? v.signature("hook_order", "lane") : v.passed() ? "pass" : "skip " + v.reason();
}

TEST(HookOrder, ThePromiseKept) {
  EXPECT_EQ(judged(reference(), logged({"piece1", "in2", "relu", "piece0", "in1", "in3"})), "pass");
  // Inside a piece any order is right.
  EXPECT_EQ(judged(reference(), logged({"piece1", "in2", "relu", "piece0", "in3", "in1"})), "pass");
}

TEST(HookOrder, AParameterTooLateOrTooEarly) {
  EXPECT_EQ(judged(reference(), logged({"piece1", "relu", "piece0", "in2", "in1", "in3"})),
            "hook_order/lane/hook_order/parameter_late");
  EXPECT_EQ(judged(reference(), logged({"in2", "piece1", "relu", "piece0", "in1", "in3"})),
            "hook_order/lane/hook_order/parameter_early");
  EXPECT_EQ(judged(reference(), logged({"in3", "piece1", "in2", "relu", "piece0", "in1"})),
            "hook_order/lane/hook_order/parameter_early");
}

TEST(HookOrder, ASeamTooLateOrTooEarly) {
  EXPECT_EQ(judged(reference(), logged({"piece1", "in2", "piece0", "relu", "in1", "in3"})),
            "hook_order/lane/hook_order/seam_late");
  EXPECT_EQ(judged(reference(), logged({"relu", "piece1", "in2", "piece0", "in1", "in3"})),
            "hook_order/lane/hook_order/seam_early");
}

TEST(HookOrder, PiecesRunDownwards) {
  EXPECT_EQ(judged(reference(), logged({"piece0", "piece1", "in2", "relu", "in1", "in3"})),
            "hook_order/lane/hook_order/piece_order");
  EXPECT_EQ(judged(reference(), logged({"piece1", "piece1", "in2", "relu", "piece0", "in1", "in3"})),
            "hook_order/lane/hook_order/piece_order");
}

TEST(HookOrder, CountsAndArguments) {
  EXPECT_EQ(judged(reference(), logged({"piece1", "in2", "in2", "relu", "piece0", "in1", "in3"})),
            "hook_order/lane/hook_count/tensor");
  EXPECT_EQ(judged(reference(), logged({"piece1", "in2", "relu", "piece0", "in1"})),
            "hook_order/lane/hook_count/tensor");
  Trace other = logged({"piece1", "in2", "relu", "piece0", "in1", "in3"});
  other.runs[0].phases[1].hooks[1].argument = tensor("in2", {9});
  EXPECT_EQ(judged(reference(), other), "hook_order/lane/hook_arg");
  other.runs[0].phases[1].hooks[1].argument = undefined("in2");
  EXPECT_EQ(judged(reference(), other), "hook_order/lane/hook_arg");
}

TEST(HookOrder, WithoutPiecesOrderIsFreeUnlessStrict) {
  const Trace lane = logged({"in1", "in3", "relu", "in2"}, false);
  EXPECT_EQ(judged(reference(), lane), "pass");
  EXPECT_EQ(judged(reference(), lane, true), "hook_order/lane/hook_order/strict");
  EXPECT_EQ(judged(reference(), reference(), true), "pass");
}

TEST(HookOrder, RefusedHooksAreLeftOut) {
  Trace lane = logged({"piece1", "in2", "piece0", "in1", "in3"});
  EXPECT_EQ(judged(reference(), lane), "hook_order/lane/hook_count/tensor");
  lane.refused_cuts = {"mul: no cut here", "hook relu: used inside its piece"};
  EXPECT_EQ(judged(reference(), lane), "pass");
}

TEST(HookOrder, NeedsAHookThatFires) {
  EXPECT_EQ(judged(logged({}, false), logged({"piece1", "piece0"})), "skip not_applicable");
}

TEST(HookOrder, LeavesWrongGradientsToTheirOracle) {
  Trace wrong = logged({"piece1", "in2", "in2"});
  wrong.runs[0].phases[1].gradients[0] = tensor("in1", {5});
  EXPECT_NE(judged(reference(), wrong), "hook_order/lane/hook_count/tensor");
}

}  // namespace
}  // namespace faultline
