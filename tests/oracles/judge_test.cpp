#include "oracles/judge.h"

#include <ATen/core/stack.h>
#include <ATen/ops/add.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include "oracles/lane.h"
#include "oracles/precision.h"
#include "tests/oracles/written.h"

namespace faultline {
namespace {

using namespace written;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

// An operator that gives something else each time.
const torch::jit::RegisterOperators tick({torch::jit::Operator(
    "faultline_test::tick(Tensor x) -> Tensor",
    [](torch::jit::Stack& stack) {
      static int64_t calls = 0;
      const at::Tensor x = torch::jit::pop(stack).toTensor();
      torch::jit::push(stack, at::add(x, ++calls));
    },
    c10::AliasAnalysisKind::FROM_SCHEMA)});

// The reference lane, with something done to its trace.
void registerEdited(const std::string& name, void (*edit)(Trace&)) {
  if (findLane(name) != nullptr) return;
  class Edited : public Lane {
   public:
    explicit Edited(void (*edit)(Trace&)) : edit_(edit) {}
    Trace execute(const Case& c, uint64_t seed) override {
      Trace trace = findLane("reference")->make()->execute(c, seed);
      edit_(trace);
      return trace;
    }

   private:
    void (*edit_)(Trace&);
  };
  registerLane({name, "test", "for a test",
                [edit]() -> std::unique_ptr<Lane> { return std::make_unique<Edited>(edit); }});
}

void scaleFloat32(Trace& trace) {
  for (RunTrace& run : trace.runs) {
    for (TensorTrace& t : run.phases[0].outputs) {
      if (t.dtype == at::kFloat) t.values.mul_(1.001);
    }
  }
}

// As a program does in which numbers cancel.
void roundBadly(Trace& trace) {
  for (RunTrace& run : trace.runs) {
    for (TensorTrace& t : run.phases[0].outputs) t.values.mul_(t.dtype == at::kFloat ? 1 + 1e-4 : 1 + 1e-13);
  }
}

void scaleSlightly(Trace& trace) {
  for (RunTrace& run : trace.runs) {
    for (TensorTrace& t : run.phases[0].outputs) t.values.mul_(1 + 1e-13);
  }
}

void makeInfinite(Trace& trace) {
  for (RunTrace& run : trace.runs) {
    for (TensorTrace& t : run.phases[0].outputs) {
      if (t.dtype == at::kFloat) t.values.fill_(INFINITY);
    }
  }
}

void scaleAll(Trace& trace) {
  for (RunTrace& run : trace.runs) {
    for (TensorTrace& t : run.phases[0].outputs) t.values.mul_(1.001);
  }
}

void forgetErrors(Trace& trace) {
  for (RunTrace& run : trace.runs) run.phases[0].error.reset();
}

void shiftGradients(Trace& trace) {
  for (RunTrace& run : trace.runs) {
    for (PhaseTrace& phase : run.phases) {
      for (TensorTrace& t : phase.gradients) t.values.add_(1);
    }
  }
}

std::vector<std::string> failuresOf(const CaseResult& result) {
  std::vector<std::string> signatures;
  for (const Judgement& j : result.judgements) {
    if (j.verdict.failed()) signatures.push_back(j.signature);
  }
  return signatures;
}

const Verdict& verdictOf(const CaseResult& result, const std::string& oracle) {
  for (const Judgement& j : result.judgements) {
    if (j.oracle == oracle) return j.verdict;
  }
  static const Verdict none = Verdict::skip("no_such_judgement");
  return none;
}

JudgeOptions inLanes(std::vector<std::string> lanes, std::vector<std::string> oracles = {}) {
  JudgeOptions options;
  options.lanes = std::move(lanes);
  options.oracles = std::move(oracles);
  return options;
}

TEST(Judge, TheKnownFailureOfTheStockExecutorHasOneSignature) {
  const Case c = caseOf(R"(graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::t(%a)
  %c : Tensor = aten::add_(%b, %one, %one)
  %d : Tensor = aten::mul(%c, %c)
  %e : Tensor = aten::tanh(%d)
  %f : Tensor = aten::mul(%e, %d)
  %g : Tensor = aten::sigmoid(%f)
  return (%g)
)",
                        {input({2, 3}), input({2, 3})});
  const CaseResult result = judgeCase(c, inLanes({"stock", "engine.broken", "engine.stitched"}));
  EXPECT_THAT(failuresOf(result), ElementsAre("run_equiv/stock/throws/view_of_leaf"));
  EXPECT_TRUE(verdictOf(result, "forward_equiv").passed());
}

TEST(Judge, OnlyOraclesAskedForThatJudgeTheLane) {
  const CaseResult all = judgeCase(smallCase(), inLanes({"stock"}));
  std::vector<std::string> names;
  for (const Judgement& j : all.judgements) names.push_back(j.oracle);
  EXPECT_THAT(names, ElementsAre("forward_equiv", "gradient_equiv", "run_equiv", "hook_order"));
  EXPECT_EQ(judgeCase(smallCase(), inLanes({"stock"}, {"run_equiv"})).judgements.size(), 1u);
  EXPECT_EQ(verdictOf(all, "hook_order").reason(), "not_applicable");
}

TEST(Judge, RoundingIsWhatFloat64DoesNotShow) {
  registerEdited("rounding", scaleFloat32);
  const CaseResult result = judgeCase(smallCase(), inLanes({"rounding"}, {"forward_equiv"}));
  ASSERT_TRUE(verdictOf(result, "forward_equiv").passed());
  EXPECT_EQ(verdictOf(result, "forward_equiv").rounding(), 1u);
  JudgeOptions options = inLanes({"rounding"}, {"forward_equiv"});
  options.confirm_in_other_precision = false;
  EXPECT_THAT(failuresOf(judgeCase(smallCase(), options)), ElementsAre("forward_equiv/test/value"));
}

Case smallCaseIn(at::ScalarType dtype) {
  Case c = smallCase();
  for (InputSpec& spec : c.runs[0].inputs) changeDtype(spec, dtype);
  return c;
}

TEST(Judge, RoundingIsWhatGrowsAsNumbersGetShorter) {
  registerEdited("rounding_badly", roundBadly);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const CaseResult result = judgeCase(smallCaseIn(dtype), inLanes({"rounding_badly"}, {"forward_equiv"}));
    ASSERT_TRUE(verdictOf(result, "forward_equiv").passed()) << dtype;
    EXPECT_EQ(verdictOf(result, "forward_equiv").rounding(), 1u);
  }
}

TEST(Judge, ASmallDifferenceThatDoesNotGrowIsNoRounding) {
  registerEdited("scaled_slightly", scaleSlightly);
  EXPECT_THAT(
      failuresOf(judgeCase(smallCaseIn(at::kDouble), inLanes({"scaled_slightly"}, {"forward_equiv"}))),
      ElementsAre("forward_equiv/test/value"));
}

TEST(Judge, WhatElseDiffersIsNotExcusedByRounding) {
  registerEdited("rounding_badly_and_strided", [](Trace& trace) {
    roundBadly(trace);
    for (RunTrace& run : trace.runs) {
      for (TensorTrace& t : run.phases[0].outputs) t.strides[0] += 1;
    }
  });
  EXPECT_THAT(failuresOf(judgeCase(smallCaseIn(at::kFloat),
                                   inLanes({"rounding_badly_and_strided"}, {"forward_equiv"}))),
              ElementsAre("forward_equiv/test/value"));
}

TEST(Judge, WrongNumbersAndInfinitiesAreNoRounding) {
  registerEdited("scaled", scaleAll);
  registerEdited("infinite", makeInfinite);
  EXPECT_THAT(failuresOf(judgeCase(smallCase(), inLanes({"scaled"}, {"forward_equiv"}))),
              ElementsAre("forward_equiv/test/value"));
  EXPECT_THAT(failuresOf(judgeCase(smallCase(), inLanes({"infinite"}, {"forward_equiv"}))),
              ElementsAre("forward_equiv/test/value/nonfinite"));
}

TEST(Judge, GradientsOfNanByKernelsThatAreOfTwoMindsAreNotJudged) {
  registerEdited("shifted", shiftGradients);
  auto through = [](const std::string& op, const std::string& argument) {
    return caseOf(fmt::format(R"(graph(%x : Tensor, %y : Tensor):
  %half : float = prim::Constant[value=0.5]()
  %one : float = prim::Constant[value=1.]()
  %minus : float = prim::Constant[value=-1.]()
  %s : Tensor = aten::square(%y)
  %n : Tensor = aten::neg(%s)
  %nan : Tensor = aten::log(%n)
  %h : Tensor = {}({})
  %z : Tensor = aten::add(%h, %x, %one)
  return (%z)
)",
                              op, argument),
                  {input({2}), input({2})});
  };
  auto judged = [&](const std::string& op, const std::string& argument) {
    return verdictOf(judgeCase(through(op, argument), inLanes({"shifted"}, {"gradient_equiv"})),
                     "gradient_equiv");
  };
  for (const auto& [op, rest] :
       std::vector<std::pair<std::string, std::string>>{{"aten::hardshrink", ", %half"},
                                                        {"aten::softshrink", ", %half"},
                                                        {"aten::hardswish", ""},
                                                        {"aten::hardtanh", ", %minus, %one"},
                                                        {"aten::elu", ", %one, %one, %one"}}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(judged(op, "%nan" + rest).reason(), "kernel_of_nan");
    EXPECT_TRUE(judged(op, "%s" + rest).failed());
  }
  EXPECT_TRUE(judged("aten::tanh", "%nan").failed());
}

TEST(Judge, AReferenceThatDiffersFromItselfJudgesNothing) {
  const Case c = caseOf(R"(graph(%x : Tensor):
  %y : Tensor = faultline_test::tick(%x)
  return (%y)
)",
                        {input({2})});
  const CaseResult result = judgeCase(c, inLanes({"stock"}));
  EXPECT_EQ(result.skip, "reference_nondeterministic");
  EXPECT_THAT(result.judgements, IsEmpty());
}

TEST(Judge, AProgramThatCannotRunIsNoCaseUnlessALaneRunsIt) {
  registerEdited("forgiving", forgetErrors);
  const Case c = caseOf(R"(graph(%x : Tensor, %y : Tensor):
  %z : Tensor = aten::mm(%x, %y)
  return (%z)
)",
                        {input({2, 3}), input({2, 3})});
  EXPECT_EQ(judgeCase(c, inLanes({"stock", "engine.broken"})).skip, "reference_throws");
  const CaseResult forgiven = judgeCase(c, inLanes({"forgiving"}, {"forward_equiv"}));
  EXPECT_EQ(forgiven.skip, "");
  EXPECT_THAT(failuresOf(forgiven), ElementsAre("forward_equiv/test/not_throws/matrix_shapes"));
}

TEST(Judge, GraphsThatDoNotVerifyAreNotRun) {
  Case c = smallCase();
  c.graph->insertNode(
      c.graph->create(c10::Symbol::fromQualString("aten::no_such_op"), {c.graph->inputs()[0]}, 1));
  EXPECT_EQ(judgeCase(c, inLanes({"stock"})).skip, "invalid_graph");
  Case none = smallCase();
  none.runs.clear();
  EXPECT_EQ(judgeCase(none, inLanes({"stock"})).skip, "no_runs");
}

TEST(Judge, LanesThatAreMissingHereAreSkippedByName) {
  if (findLane("missing") == nullptr) {
    registerLane({"missing", "test", "for a test", []() -> std::unique_ptr<Lane> { return nullptr; }});
  }
  EXPECT_EQ(verdictOf(judgeCase(smallCase(), inLanes({"missing"})), "forward_equiv").reason(),
            "lane_unavailable");
}

TEST(Judge, PlansWithoutAnActorSkipTheCase) {
  Case c = smallCase();
  c.plan.ranks = 2;
  EXPECT_EQ(judgeCase(c, inLanes({"stock"})).skip, "plan_unsupported");
}

TEST(Judge, TellsEachStep) {
  std::vector<std::string> steps;
  JudgeOptions options = inLanes({"stock"});
  options.step = [&](const std::string& lane, int run, const std::string& phase) {
    steps.push_back(lane + std::to_string(run) + phase);
  };
  (void)judgeCase(smallCase(), options);
  EXPECT_THAT(steps, Contains("reference0forward"));
  EXPECT_THAT(steps, Contains("stock2backward0"));
}

TEST(Float64, WidensInputsConstantsAndDtypes) {
  const Case c = caseOf(R"(graph(%x : Float(2, strides=[1], requires_grad=0, device=cpu)):
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %half : int = prim::Constant[value=5]()
  %long : int = prim::Constant[value=4]()
  %a : Tensor = aten::to(%x, %half, %no, %no, %none)
  %b : Tensor = aten::to(%x, %long, %no, %no, %none)
  return (%a, %b)
)",
                        {input({2}, false)});
  const auto wide = toFloat64(c);
  ASSERT_TRUE(wide.has_value());
  EXPECT_EQ(wide->runs[0].inputs[0].dtype, at::kDouble);
  const Trace t = findLane("reference")->make()->execute(*wide, c.seed);
  EXPECT_EQ(t.runs[0].phases[0].outputs[0].dtype, at::kDouble);
  EXPECT_EQ(t.runs[0].phases[0].outputs[1].dtype, at::kLong);
  EXPECT_EQ(c.runs[0].inputs[0].dtype, at::kFloat) << "the original stays";
  Case whole = c;
  whole.runs[0].inputs[0].dtype = at::kDouble;
  whole = *toFloat64(whole);
  EXPECT_FALSE(toFloat64(whole).has_value());
}

}  // namespace
}  // namespace faultline
