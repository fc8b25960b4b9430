// The equivalence oracles on written traces: each difference has its kind, and none is no failure.
#include <gtest/gtest.h>

#include "oracles/oracle.h"
#include "tests/oracles/written.h"

namespace faultline {
namespace {

using namespace written;

Verdict judge(const std::string& oracle, const Trace& reference, const Trace& lane) {
  static const Case c = smallCase();
  return findOracle(oracle)->make({})->judge(c, reference, lane);
}

std::string signatureOf(const Verdict& v, const std::string& oracle) {
  return v.failed() ? v.signature(oracle, "lane") : v.passed() ? "pass" : "skip " + v.reason();
}

std::string judged(const std::string& oracle, const Trace& reference, const Trace& lane) {
  return signatureOf(judge(oracle, reference, lane), oracle);
}

TEST(ForwardEquiv, PassesEqualTracesAndCounts) {
  const Verdict v = judge("forward_equiv", trace(), trace());
  EXPECT_TRUE(v.passed());
  EXPECT_GE(v.comparisons(), 2u);
}

TEST(ForwardEquiv, TellsKindsApart) {
  const Trace good = trace();
  auto changed = [&](auto change) {
    Trace bad = good;
    change(bad.runs[0].phases[0]);
    return judged("forward_equiv", good, bad);
  };
  EXPECT_EQ(changed([](PhaseTrace& p) {
              p.outputs[0].values = at::tensor({2.f, 1.5f});
            }),
            "forward_equiv/lane/value");
  EXPECT_EQ(changed([](PhaseTrace& p) {
              p.outputs[0].values = at::tensor({2.f, NAN});
            }),
            "forward_equiv/lane/value/nonfinite");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.outputs[0].sizes = {1, 2}; }), "forward_equiv/lane/shape");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.outputs.clear(); }), "forward_equiv/lane/shape");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.outputs[0].dtype = at::kDouble; }), "forward_equiv/lane/dtype");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.outputs[0].requires_grad = false; }),
            "forward_equiv/lane/requires_grad");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.outputs[0].is_leaf = true; }), "forward_equiv/lane/leaf");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.outputs[0].strides = {3}; }), "forward_equiv/lane/stride");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.error = error("view_of_leaf"); }),
            "forward_equiv/lane/throws/view_of_leaf");
}

TEST(ForwardEquiv, TheGravestDifferenceNamesTheFailure) {
  Trace bad = trace();
  bad.runs[0].phases[0].outputs[0].strides = {3};
  bad.runs[0].phases[0].outputs[0].requires_grad = false;
  bad.runs[0].phases[0].outputs[0].values = at::tensor({0.f, 0.f});
  EXPECT_EQ(judged("forward_equiv", trace(), bad), "forward_equiv/lane/value");
}

TEST(ForwardEquiv, ErrorsOfTheReference) {
  Trace throws = trace();
  for (RunTrace& run : throws.runs) {
    run.phases.resize(1);
    run.phases[0].error = error("size_mismatch");
  }
  EXPECT_EQ(judged("forward_equiv", throws, trace()), "forward_equiv/lane/not_throws/size_mismatch");
  EXPECT_EQ(judged("forward_equiv", throws, throws), "skip reference_throws");
  Trace other = throws;
  other.runs[0].phases[0].error = error("view_of_leaf");
  EXPECT_EQ(judged("forward_equiv", throws, other), "forward_equiv/lane/wrong_error/view_of_leaf");
  // Wording that no row of errors.def knows is no other error.
  other.runs[0].phases[0].error = error("some_words_of_a_kernel");
  EXPECT_EQ(judged("forward_equiv", throws, other), "skip reference_throws");
  // Nor is a class that the interpreter has hidden.
  other.runs[0].phases[0].error = ErrorTrace{"IndexError", "size_mismatch", ""};
  EXPECT_EQ(judged("forward_equiv", throws, other), "skip reference_throws");
}

TEST(ForwardEquiv, MutatedInputs) {
  Trace good = trace();
  good.runs[0].phases[0].inputs = {tensor("in0", {5})};
  good.runs[0].phases[0].inputs[0].version = 1;
  Trace bad = good;
  bad.runs[0].phases[0].inputs[0].values = at::tensor({4.f});
  EXPECT_EQ(judged("forward_equiv", good, bad), "forward_equiv/lane/value");
  bad.runs[0].phases[0].inputs[0].version = 0;
  EXPECT_EQ(judged("forward_equiv", good, bad), "forward_equiv/lane/mutation");
}

TEST(ForwardEquiv, Scalars) {
  auto with = [](const std::string& text) {
    Trace t = trace();
    t.runs[0].phases[0].scalars = {{"out1", text}};
    return t;
  };
  EXPECT_EQ(judged("forward_equiv", with("3"), with("4")), "forward_equiv/lane/value");
  EXPECT_EQ(judged("forward_equiv", with("1.00000001"), with("1.00000002")), "pass");
  EXPECT_EQ(judged("forward_equiv", with("1.5"), with("1.6")), "forward_equiv/lane/value");
  EXPECT_EQ(judged("forward_equiv", with("nan"), with("nan")), "pass");
  EXPECT_EQ(judged("forward_equiv", with("None"), with("0")), "forward_equiv/lane/value");
}

TEST(ForwardEquiv, LeavesLaterRunsToRunEquiv) {
  Trace late = trace();
  late.runs[1].phases[0].outputs[0].values = at::tensor({9.f, 9.f});
  EXPECT_EQ(judged("forward_equiv", trace(), late), "pass");
  EXPECT_EQ(judged("run_equiv", trace(), late), "run_equiv/lane/value");
}

TEST(GradientEquiv, TellsKindsApart) {
  const Trace good = trace();
  auto changed = [&](auto change) {
    Trace bad = good;
    change(bad.runs[0].phases[1]);
    return judged("gradient_equiv", good, bad);
  };
  EXPECT_EQ(judged("gradient_equiv", good, good), "pass");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.gradients[0].values = at::tensor({3.1f}); }),
            "gradient_equiv/lane/grad");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.gradients[0].values = at::tensor({INFINITY}); }),
            "gradient_equiv/lane/grad/nonfinite");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.gradients[0] = undefined("in0"); }),
            "gradient_equiv/lane/undefined_grad");
  EXPECT_EQ(changed([](PhaseTrace& p) { p.error = error("undefined_tensor"); }),
            "gradient_equiv/lane/throws/undefined_tensor");
}

TEST(GradientEquiv, ZeroIsNotUndefined) {
  Trace reference = trace(2, 0);
  reference.runs[0].phases[1].gradients[0] = undefined("in0");
  EXPECT_EQ(judged("gradient_equiv", reference, trace(2, 0)), "gradient_equiv/lane/undefined_grad");
}

TEST(GradientEquiv, NeedsAnOutputWithAGradientAndABackward) {
  Trace flat = trace();
  for (RunTrace& run : flat.runs) run.phases[0].outputs[0].requires_grad = false;
  EXPECT_EQ(judged("gradient_equiv", flat, flat), "skip not_applicable");
  Trace forward_only = trace();
  for (RunTrace& run : forward_only.runs) run.phases.resize(1);
  EXPECT_EQ(judged("gradient_equiv", forward_only, forward_only), "skip not_applicable");
}

TEST(GradientEquiv, LeavesOtherForwardsToForwardEquiv) {
  Trace other = trace();
  other.runs[0].phases[0].outputs[0].requires_grad = false;
  EXPECT_EQ(judged("gradient_equiv", trace(), other), "skip forward_differs");
  other.runs[0].phases[0].error = error("cast");
  EXPECT_EQ(judged("gradient_equiv", trace(), other), "skip forward_throws");
}

TEST(RunEquiv, LaterRunsOnly) {
  const Trace good = trace();
  EXPECT_EQ(judged("run_equiv", good, good), "pass");
  Trace throws = good;
  throws.runs[1].phases.resize(1);
  throws.runs[1].phases[0].error = error("view_of_leaf");
  EXPECT_EQ(judged("run_equiv", good, throws), "run_equiv/lane/throws/view_of_leaf");
  EXPECT_EQ(judged("forward_equiv", good, throws), "pass");
  Trace third = good;
  third.runs[2].phases[1].gradients[0] = undefined("in0");
  EXPECT_EQ(judged("run_equiv", good, third), "run_equiv/lane/undefined_grad");
  Trace first = good;
  first.runs[0].phases[0].outputs[0].values = at::tensor({0.f, 0.f});
  EXPECT_EQ(judged("run_equiv", good, first), "skip first_run_differs");
  Trace fewer = good;
  fewer.runs.pop_back();
  EXPECT_EQ(judged("run_equiv", good, fewer), "run_equiv/lane/shape");
}

TEST(BreakEquiv, AllRunsAndAliases) {
  Trace good = trace();
  good.runs[2].phases[0].outputs[0].alias_class = 0;
  EXPECT_EQ(judged("break_equiv", good, good), "pass");
  Trace other = good;
  other.runs[2].phases[0].outputs[0].alias_class = 1;
  EXPECT_EQ(judged("break_equiv", good, other), "break_equiv/lane/alias");
  Trace wrong = good;
  wrong.runs[1].phases[1].gradients[0].values = at::tensor({1.f});
  EXPECT_EQ(judged("break_equiv", good, wrong), "break_equiv/lane/grad");
  Trace first = good;
  first.runs[0].phases[0].outputs[0].values = at::tensor({1.f, 1.f});
  EXPECT_EQ(judged("break_equiv", good, first), "break_equiv/lane/value");
}

TEST(BreakEquiv, ARunThatThrowsAlikeIsEqual) {
  Trace good = trace();
  good.runs[1].phases.resize(1);
  good.runs[1].phases[0].error = error("size_mismatch");
  EXPECT_EQ(judged("break_equiv", good, good), "pass");
}

}  // namespace
}  // namespace faultline
