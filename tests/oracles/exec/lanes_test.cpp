// Lanes on real graphs: what they execute, and how a trace tells it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracles/exec/execute.h"
#include "oracles/lane.h"
#include "tests/oracles/written.h"

namespace faultline {
namespace {

using namespace written;
using testing::ElementsAre;
using testing::HasSubstr;

Trace executed(const std::string& lane, const Case& c) { return findLane(lane)->make()->execute(c, c.seed); }

// Those of the program, without what other tests register.
std::vector<std::string> ownLanes() {
  return resolveLanes({"reference", "engine", "stitched", "stock"}).value();
}

double only(const TensorTrace& t) { return t.values.item<double>(); }

std::vector<std::string> firedOn(const PhaseTrace& phase) {
  std::vector<std::string> names;
  for (const HookTrace& h : phase.hooks) names.push_back(h.on);
  return names;
}

constexpr const char* kSquare = R"(graph(%x : Tensor):
  %y : Tensor = aten::mul(%x, %x)
  return (%y)
)";

// Writing into a view of a product: libtorch keeps aten::t inside the differentiable subgraph, whose inputs
// are detached leaves.
constexpr const char* kWriteIntoView = R"(graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::t(%a)
  %c : Tensor = aten::add_(%b, %one, %one)
  %d : Tensor = aten::mul(%c, %c)
  %e : Tensor = aten::tanh(%d)
  %f : Tensor = aten::mul(%e, %d)
  %g : Tensor = aten::sigmoid(%f)
  return (%g)
)";

TEST(ReferenceLane, ForwardAndGradient) {
  Case c = caseOf(kSquare, {input({})});
  c.runs[0].inputs[0].pattern = ValuePattern::Fill;
  c.runs[0].inputs[0].fill = 3;
  const Trace t = executed("reference", c);
  ASSERT_EQ(t.runs.size(), kLeastRuns);
  for (const RunTrace& run : t.runs) {
    ASSERT_EQ(run.phases.size(), 2u);
    EXPECT_EQ(only(run.phases[0].outputs[0]), 9);
    const double weight = weightsFor(at::zeros({}), c.seed, 0).item<double>();
    EXPECT_FLOAT_EQ(static_cast<float>(only(run.phases[1].gradients[0])), static_cast<float>(6 * weight));
  }
}

// Every lane begins with the constant as it is written, whatever the lanes before it have done to theirs.
TEST(Lanes, WriteIntoConstantsOfTheirOwn) {
  const Case c = caseOf(R"(graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %k : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=tensor(Float(2), [1, 2])]()
  %w : Tensor = aten::add_(%k, %one, %one)
  %y : Tensor = aten::mul(%x, %w)
  return (%y, %k)
)",
                        {input({2})});
  for (const char* lane : {"reference", "reference", "stock", "engine.broken"}) {
    const Trace t = executed(lane, c);
    ASSERT_FALSE(t.runs.empty()) << lane;
    const at::Tensor k = t.runs[0].phases[0].outputs[1].values;
    EXPECT_TRUE(at::equal(k.to(at::kFloat), at::tensor({2.F, 3.F}))) << lane << ": " << k;
  }
}

TEST(ReferenceLane, LeafAndNonLeafInputsGetTheirGradient) {
  Case c = caseOf(kSquare, {input({2})});
  const Trace leaf = executed("reference", c);
  c.runs[0].inputs[0].leaf = false;
  const Trace non_leaf = executed("reference", c);
  EXPECT_TRUE(leaf.runs[0].phases[1].gradients[0].defined);
  EXPECT_TRUE(non_leaf.runs[0].phases[1].gradients[0].defined);
  EXPECT_FALSE(non_leaf.runs[0].phases[0].inputs[0].is_leaf);
}

TEST(ReferenceLane, OneOutputAloneLeavesOthersUndefined) {
  Case c = caseOf(R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%y)
  return (%a, %b)
)",
                  {input({2}), input({2})});
  c.runs[0].backwards = {BackwardSpec{}, {BackwardSpec::Kind::Output, 1}};
  const Trace t = executed("reference", c);
  const auto& alone = t.runs[0].phases[2];
  EXPECT_EQ(alone.name(), "backward1");
  EXPECT_FALSE(alone.gradients[0].defined);
  EXPECT_TRUE(alone.gradients[1].defined);
  EXPECT_TRUE(t.runs[0].phases[1].gradients[0].defined);
}

TEST(ReferenceLane, DoubleBackward) {
  Case c = caseOf(R"(graph(%x : Tensor):
  %y : Tensor = aten::mul(%x, %x)
  %z : Tensor = aten::mul(%y, %x)
  return (%z)
)",
                  {input({})});
  c.runs[0].inputs[0].pattern = ValuePattern::Fill;
  c.runs[0].inputs[0].fill = 2;
  c.runs[0].backwards = {{BackwardSpec::Kind::Double, 0}, BackwardSpec{}};
  const Trace t = executed("reference", c);
  const double w = weightsFor(at::zeros({}, at::kDouble), c.seed, 0).item<double>();
  EXPECT_NEAR(only(t.runs[0].phases[1].gradients[0]), 6 * 2 * w * w, 1e-4);
  // The phase after it starts from nothing.
  EXPECT_NEAR(only(t.runs[0].phases[2].gradients[0]), 3 * 4 * w, 1e-4);
}

TEST(ReferenceLane, CallersGradModeAndMutation) {
  Case c = caseOf(R"(graph(%x : Tensor):
  %y : Tensor = aten::relu_(%x)
  return (%y)
)",
                  {input({4}, false)});
  c.runs[0].grad_mode = false;
  const Trace t = executed("reference", c);
  const auto& forward = t.runs[0].phases[0];
  EXPECT_FALSE(forward.outputs[0].requires_grad);
  EXPECT_EQ(forward.outputs[0].same_object, forward.inputs[0].same_object);
  EXPECT_EQ(forward.outputs[0].alias_class, forward.inputs[0].alias_class);
  EXPECT_TRUE(at::equal(forward.outputs[0].values, forward.inputs[0].values));
}

TEST(ReferenceLane, ErrorsStandInTheTrace) {
  const Case c = caseOf(R"(graph(%x : Tensor, %y : Tensor):
  %z : Tensor = aten::mm(%x, %y)
  return (%z)
)",
                        {input({2, 3}), input({2, 3})});
  const Trace t = executed("reference", c);
  ASSERT_EQ(t.runs.size(), kLeastRuns);
  ASSERT_EQ(t.runs[0].phases.size(), 1u);
  EXPECT_EQ(t.runs[0].phases[0].error->detail, "matrix_shapes");
}

TEST(ReferenceLane, TheSameStreamInEveryLane) {
  const Case c = caseOf(R"(graph(%x : Tensor):
  %p : float = prim::Constant[value=0.5]()
  %on : bool = prim::Constant[value=1]()
  %y : Tensor = aten::dropout(%x, %p, %on)
  return (%y)
)",
                        {input({64})});
  const Trace a = executed("reference", c);
  const Trace b = executed("stock", c);
  for (size_t k = 0; k < kLeastRuns; ++k) {
    EXPECT_TRUE(at::equal(a.runs[k].phases[0].outputs[0].values, b.runs[k].phases[0].outputs[0].values)) << k;
  }
  EXPECT_FALSE(at::equal(a.runs[0].phases[0].outputs[0].values, a.runs[1].phases[0].outputs[0].values));
}

TEST(StockLane, WritingIntoAViewOfAProductThrowsFromRunTwoOn) {
  const Case c = caseOf(kWriteIntoView, {input({2, 3}), input({2, 3})});
  const Trace t = executed("stock", c);
  ASSERT_EQ(t.runs.size(), 3u);
  EXPECT_FALSE(t.runs[0].phases[0].error.has_value());
  ASSERT_TRUE(t.runs[1].phases[0].error.has_value());
  EXPECT_EQ(t.runs[1].phases[0].error->detail, "view_of_leaf");
  EXPECT_TRUE(t.runs[2].phases[0].error.has_value());
}

TEST(StockLane, ShowsWhatItRan) {
  const Case c = caseOf(kSquare, {input({2})});
  EXPECT_THAT(executed("stock", c).graph_text, HasSubstr("aten::mul"));
}

TEST(Hooks, OnInputsAndSeams) {
  for (const char* lane : {"reference", "stock"}) {
    Case c = caseOf(R"(graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::sigmoid(%b)
  return (%c)
)",
                    {input({2}, false), input({2})});
    c.plan.hooks = {{HookKind::Tensor, 1, ""},
                    {HookKind::PostAccumulate, 1, ""},
                    {HookKind::Tensor, 0, "relu"},
                    {HookKind::RetainGrad, 0, "mul"},
                    {HookKind::Tensor, 0, ""}};
    const Trace t = executed(lane, c);
    for (const RunTrace& run : t.runs) {
      EXPECT_THAT(firedOn(run.phases[1]), ElementsAre("relu", "in1", "in1", "mul")) << lane;
      EXPECT_EQ(run.phases[1].hooks[2].kind, HookTrace::Kind::PostAccumulate);
      EXPECT_TRUE(run.phases[1].hooks[3].argument.defined);
    }
    EXPECT_THAT(t.runs[0].phases[0].hooks, ElementsAre());
  }
}

TEST(Hooks, SeveralPostAccumulateHooksOnOneLeaf) {
  Case c = caseOf(kSquare, {input({2})});
  c.plan.hooks = {{HookKind::PostAccumulate, 0, ""}, {HookKind::PostAccumulate, 0, ""}};
  EXPECT_THAT(firedOn(executed("reference", c).runs[0].phases[1]), ElementsAre("in0", "in0"));
}

TEST(Plans, WithoutAnActorAreSkipped) {
  Case c = caseOf(kSquare, {input({2})});
  c.plan.passes = {"dce"};
  for (const std::string& lane : ownLanes()) EXPECT_EQ(executed(lane, c).skip, "plan_unsupported") << lane;
  c.plan.passes.clear();
  c.plan.ranks = 2;
  EXPECT_EQ(executed("reference", c).skip, "plan_unsupported");
  c.plan.ranks = 1;
  c.plan.breaks = "buckets 1MiB";
  EXPECT_EQ(executed("engine.broken", c).skip, "plan_unsupported");
  EXPECT_EQ(executed("reference", c).skip, "");
  c.plan.hooks = {{HookKind::Tensor, 0, "no_such_op"}};
  EXPECT_EQ(executed("reference", c).skip, "plan_unsupported");
}

TEST(Lanes, ProfileNodesAndSubgraphsAreNoObstacle) {
  const Case c = caseOf(R"(graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Tensor](%x)
  %y : Tensor = prim::DifferentiableGraph_0(%p)
  return (%y)
with prim::DifferentiableGraph_0 = graph(%a : Tensor):
  %b : Tensor = aten::relu(%a)
  return (%b)
)",
                        {input({3})});
  for (const std::string& lane : ownLanes()) {
    const Trace t = executed(lane, c);
    ASSERT_EQ(t.skip, "") << lane;
    EXPECT_FALSE(t.runs[2].phases[0].error.has_value()) << lane << t.runs[2].phases[0].error->text;
  }
}

TEST(StepObserver, IsToldEachPhase) {
  std::vector<std::string> steps;
  auto before = setStepObserver(
      [&](int run, const std::string& phase) { steps.push_back(std::to_string(run) + phase); });
  executed("reference", caseOf(kSquare, {input({2})}));
  setStepObserver(std::move(before));
  EXPECT_THAT(steps,
              ElementsAre("0forward", "0backward0", "1forward", "1backward0", "2forward", "2backward0"));
}

}  // namespace
}  // namespace faultline
