// Consuming profiles: what is pruned, that results stay eager's, and that other runs than the profiled one
// are guarded.
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/profile/apply.h"
#include "faultline/recorder.h"
#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

using torch::jit::Stack;

std::shared_ptr<Graph> layers() {
  return test::parse(R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor, %c : bool):
  %1 : int = prim::Constant[value=1]()
  %m : Tensor = aten::mm(%x, %w)
  %t : Tensor = aten::tanh(%m)
  %r : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      -> (%v)
  %s : Tensor = aten::mul(%t, %r)
  return (%s)
)");
}

struct Inputs {
  at::Tensor x, w, v;
  explicit Inputs(bool x_grad = false, at::ScalarType dtype = at::kFloat)
      : x(at::arange(4, dtype).div(8).view({2, 2}).requires_grad_(x_grad)),
        w(at::ones({2, 2}, dtype).requires_grad_()),
        v(at::full({2, 2}, 0.5, dtype).requires_grad_()) {}
  Stack stack(bool c) const { return {x, w, v, c}; }
  std::vector<at::Tensor> gradients() const { return {x.grad(), w.grad(), v.grad()}; }
};

std::shared_ptr<Graph> profiledOn(const std::shared_ptr<Graph>& graph, const Inputs& inputs, bool c) {
  auto recorder = Recorder::instrument(*graph);
  EXPECT_TRUE(recorder.has_value());
  const Recorder::Run run(*recorder);
  Stack stack = inputs.stack(c);
  torch::jit::Code code(recorder->graph(), "recorded");
  torch::jit::InterpreterState(code).run(stack);
  auto profiled = withProfileNodes(*graph, recorder->recording());
  propagateProfileNode(profiled);
  EXPECT_TRUE(validateProfileNode(profiled));
  return profiled;
}

// Runs both with inputs of their own and compares outputs, flags and gradients, undefined ones included.
template <class Program>
void expectEager(const std::shared_ptr<Graph>& graph, const Program& program, bool x_grad, bool c,
                 at::ScalarType dtype = at::kFloat, bool grad_mode = true) {
  SCOPED_TRACE(testing::Message() << "x_grad " << x_grad << ", c " << c << ", grad mode " << grad_mode);
  const Inputs expected(x_grad, dtype);
  const Inputs got(x_grad, dtype);
  Stack eager = expected.stack(c);
  Stack stack = got.stack(c);
  {
    const at::AutoGradMode mode(grad_mode);
    torch::jit::Code code(graph, "eager");
    torch::jit::InterpreterState(code).run(eager);
    program.run(stack);
  }
  ASSERT_EQ(stack.size(), eager.size());
  EXPECT_TRUE(at::equal(stack[0].toTensor(), eager[0].toTensor()));
  ASSERT_EQ(stack[0].toTensor().requires_grad(), eager[0].toTensor().requires_grad());
  if (!eager[0].toTensor().requires_grad()) return;
  eager[0].toTensor().sum().backward();
  stack[0].toTensor().sum().backward();
  for (size_t i = 0; i < 3; ++i) {
    const at::Tensor a = expected.gradients()[i];
    const at::Tensor b = got.gradients()[i];
    ASSERT_EQ(a.defined(), b.defined()) << i;
    if (a.defined()) EXPECT_TRUE(at::allclose(a, b)) << i;
  }
}

TEST(ApplyProfile, PrunesWhatDidNotRequireGrad) {
  auto graph = layers();
  auto profiled = profiledOn(graph, Inputs(), true);
  const std::string before = writeGraph(*profiled);
  auto applied = applyProfile(profiled);
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ(writeGraph(*profiled), before);
  // x as it comes in, and what the If makes of it.
  EXPECT_EQ(applied->report().pruned, 2u);
  EXPECT_EQ(applied->report().unknown.size(), 0u);
  expectEager(graph, *applied, false, true);
}

TEST(ApplyProfile, WithoutNodesNothingIsKnown) {
  auto applied = applyProfile(layers());
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ(applied->report().known, 0u);
  EXPECT_EQ(applied->report().pruned, 0u);
  ASSERT_FALSE(applied->report().unknown.empty());
  EXPECT_EQ(applied->report().unknown[0].op, "mm");
  EXPECT_NE(applied->report().unknown[0].why, "");
}

TEST(ApplyProfile, OtherFlagsModesDtypesAndBranchesAreGuarded) {
  auto graph = layers();
  auto applied = applyProfile(profiledOn(graph, Inputs(), true));
  ASSERT_TRUE(applied.has_value());
  for (const bool x_grad : {false, true}) {
    for (const bool c : {true, false}) {
      expectEager(graph, *applied, x_grad, c);
      expectEager(graph, *applied, x_grad, c, at::kDouble);
      expectEager(graph, *applied, x_grad, c, at::kFloat, false);
    }
  }
}

// What the guards are for.
TEST(ApplyProfile, UnguardedANeededGradientIsLost) {
  auto graph = layers();
  auto profiled = profiledOn(graph, Inputs(), true);
  auto plan = planBreaks(*profiled, BreakPolicy::none());
  ASSERT_TRUE(plan.has_value());
  const KnownGradients known = profile::knownGradients(*profiled);
  ApplyReport report;
  auto compiled = compileSpecialised(profiled, *plan, {known, Guard::None}, report);
  ASSERT_TRUE(compiled.has_value());
  const Inputs inputs(/*x_grad=*/true);
  Stack stack = inputs.stack(true);
  compiled->run(stack);
  stack[0].toTensor().sum().backward();
  EXPECT_TRUE(inputs.w.grad().defined());
  EXPECT_FALSE(inputs.x.grad().defined());
}

// mm's gradient for x takes w; mul's for the If's result takes tanh's.
TEST(ApplyProfile, SaysWhatIsSaved) {
  auto applied = applyProfile(profiledOn(layers(), Inputs(), true));
  ASSERT_TRUE(applied.has_value());
  const ApplyReport& report = applied->report();
  EXPECT_GT(report.backward_nodes_saved, 0);
  EXPECT_GE(report.captured_saved, 1);
  EXPECT_EQ(report.captured_unsized, 0);
  EXPECT_EQ(report.captured_bytes_saved, 16 * report.captured_saved);
  auto nothing = applyProfile(layers());
  ASSERT_TRUE(nothing.has_value());
  EXPECT_EQ(nothing->report().backward_nodes_saved, 0);
  EXPECT_EQ(nothing->report().captured_saved, 0);
}

// A node of another shape is a finding, and no part of what runs.
TEST(ApplyProfile, IgnoresNodesThatSayNothing) {
  auto graph = layers();
  Node* odd = graph->create(torch::jit::prim::profile, {graph->inputs()[0], graph->inputs()[1]}, 1);
  odd->insertBefore(*graph->nodes().begin());
  auto applied = applyProfile(graph);
  ASSERT_TRUE(applied.has_value()) << applied.error().str();
  EXPECT_EQ(applied->report().known, 0u);
}

TEST(ApplyProfile, NodesInsideSubgraphsCount) {
  auto graph = test::parse(R"(
graph(%x : Tensor, %w : Tensor):
  %y : Tensor = prim::DifferentiableGraph_0(%x, %w)
  return (%y)
with prim::DifferentiableGraph_0 = graph(%a : Tensor, %b : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)](%a)
  %m : Tensor = aten::mm(%p, %b)
  return (%m)
)");
  auto applied = applyProfile(graph);
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ(applied->report().known, 1u);
  EXPECT_EQ(applied->report().pruned, 1u);
}

}  // namespace
}  // namespace faultline
