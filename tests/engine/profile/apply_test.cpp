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

// There is nothing that a later run could contradict: its part runs compiled whatever the flag, for no more
// gradients than are needed. What the profile did say stays guarded.
TEST(ApplyProfile, WhatTheProfileDoesNotSayIsNotGuarded) {
  auto graph = layers();
  auto profiled = profiledOn(graph, Inputs(), true);
  const auto nodeOf = [&](const AppliedProfile& applied, bool x_grad, bool w_grad) {
    Inputs inputs(x_grad);
    inputs.w.requires_grad_(w_grad);
    Stack stack = inputs.stack(false);
    applied.run(stack);
    return stack[0].toTensor().grad_fn();
  };
  const auto isOurs = [](const auto& node) { return node->name().rfind("PieceBackward", 0) == 0; };
  // Without any node: the last part has the product of all and v or what came of x.
  auto unknown = applyProfile(graph);
  ASSERT_TRUE(unknown.has_value());
  for (const bool x_grad : {false, true}) {
    for (const bool w_grad : {false, true}) {
      const auto node = nodeOf(*unknown, x_grad, w_grad);
      EXPECT_TRUE(isOurs(node)) << node->name();
      for (const auto& edge : node->next_edges()) EXPECT_TRUE(edge.is_valid());
    }
    for (const bool c : {true, false}) expectEager(graph, *unknown, x_grad, c);
  }
  // Of w and tanh's result the profile said that they require grad.
  auto known = applyProfile(profiled);
  ASSERT_TRUE(known.has_value());
  EXPECT_FALSE(isOurs(nodeOf(*known, false, false)));
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

// With the arms cut off from the rest they are compiled, and pruned, too.
TEST(ApplyProfile, OpsInsideBlocksAreSpecialised) {
  auto graph = test::parse(R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %m : Tensor = aten::mm(%x, %w)
      %t : Tensor = aten::tanh(%m)
      -> (%t)
    block1():
      -> (%v)
  return (%r)
)");
  const auto ends_arm = [](const Node& node) { return node.kind() == torch::jit::aten::tanh; };
  auto applied =
      applyProfile(profiledOn(graph, Inputs(), true), {BreakPolicy::predicate(ends_arm).insideBlocks()});
  ASSERT_TRUE(applied.has_value()) << applied.error().str();
  EXPECT_EQ(applied->report().pruned, 1u);
  for (const bool x_grad : {false, true}) {
    for (const bool c : {true, false}) expectEager(graph, *applied, x_grad, c);
  }
}

// What libtorch's executor is wrong about: the profiled run's flags are not taken for those of this run.
TEST(ApplyProfile, ListsOfTensorsAreGuarded) {
  auto graph = test::parse(R"(
graph(%l : Tensor[], %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %c : Tensor = aten::cat(%l, %0)
  %a : Tensor = aten::tanh(%c)
  %m : Tensor = aten::mul(%a, %y)
  %s : Tensor = aten::sigmoid(%m)
  %p : Tensor = aten::mul(%s, %a)
  %r : Tensor = aten::add(%p, %y, %1)
  return (%r, %l)
)");
  const auto run = [&](auto&& program, bool first, bool second, bool y_grad, bool grad_mode) {
    const at::Tensor a = at::full({2}, 0.5).requires_grad_(first),
                     b = at::full({2}, 0.25).requires_grad_(second);
    const at::Tensor y = at::full({4}, 2.0).requires_grad_(y_grad);
    Stack stack = {c10::List<at::Tensor>({a, b}), y};
    {
      const at::AutoGradMode mode(grad_mode);
      program(stack);
    }
    const at::Tensor result = stack[0].toTensor();
    if (result.requires_grad()) result.sum().backward();
    return std::vector<at::Tensor>{result, a.grad(), b.grad(), y.grad()};
  };
  auto recorder = Recorder::instrument(*graph);
  ASSERT_TRUE(recorder.has_value());
  run(
      [&](Stack& stack) {
        const Recorder::Run recorded(*recorder);
        torch::jit::Code code(recorder->graph(), "recorded");
        torch::jit::InterpreterState(code).run(stack);
      },
      true, true, false, true);
  auto applied = applyProfile(withProfileNodes(*graph, recorder->recording()));
  ASSERT_TRUE(applied.has_value()) << applied.error().str();
  EXPECT_GT(applied->report().pruned, 0u);
  for (int flags = 0; flags < 16; ++flags) {
    SCOPED_TRACE(flags);
    const bool first = flags & 1, second = flags & 2, y_grad = flags & 4, grad_mode = flags & 8;
    const auto eager = run(
        [&](Stack& stack) {
          torch::jit::Code code(graph, "eager");
          torch::jit::InterpreterState(code).run(stack);
        },
        first, second, y_grad, grad_mode);
    const auto got = run([&](Stack& stack) { applied->run(stack); }, first, second, y_grad, grad_mode);
    EXPECT_EQ(got[0].requires_grad(), eager[0].requires_grad());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].defined(), eager[i].defined()) << i;
      if (got[i].defined()) EXPECT_TRUE(at::allclose(got[i], eager[i])) << i;
    }
  }
}

ApplyGuard frozenX(std::function<bool(const Stack&)> holds) {
  return {"x is frozen", std::move(holds), {{"x", c10::TensorType::get()->withRequiresGrad(false)}}};
}

TEST(ApplyProfile, ACallersGuardAddsWhatItAssumes) {
  auto graph = layers();
  size_t asked = 0;
  const auto small = [&](const Stack& inputs) {
    ++asked;
    return inputs[0].toTensor().numel() <= 4;
  };
  auto applied = applyProfile(graph, {BreakPolicy::none(), {frozenX(small)}});
  ASSERT_TRUE(applied.has_value()) << applied.error().str();
  EXPECT_EQ(applied->report().pruned, 0u);
  ASSERT_EQ(applied->guarded().size(), 1u);
  EXPECT_EQ(applied->guarded()[0].guard.name, "x is frozen");
  EXPECT_EQ(applied->guarded()[0].report.pruned, 1u);
  EXPECT_GT(applied->guarded()[0].report.backward_nodes_saved, 0);
  EXPECT_EQ(asked, 0u);
  expectEager(graph, *applied, false, true);
  EXPECT_EQ(asked, 1u);
  // Wrong when it says it holds: that costs time.
  for (const bool c : {true, false}) expectEager(graph, *applied, true, c);
  expectEager(graph, *applied, true, true, at::kFloat, false);
}

TEST(ApplyProfile, TheFirstGuardThatHoldsDecides) {
  std::vector<int> asked;
  const auto guard = [&](int number, bool holds) {
    return frozenX([&asked, number, holds](const Stack&) {
      asked.push_back(number);
      return holds;
    });
  };
  auto graph = layers();
  auto applied =
      applyProfile(graph, {BreakPolicy::none(), {guard(0, false), guard(1, true), guard(2, true)}});
  ASSERT_TRUE(applied.has_value());
  const Inputs inputs;
  Stack stack = inputs.stack(true);
  applied->run(stack);
  EXPECT_EQ(asked, (std::vector<int>{0, 1}));
  auto seam = applied->guarded()[1].compiled.pieceNode(0);
  EXPECT_NE(seam, nullptr);
  EXPECT_EQ(applied->compiled().pieceNode(0), nullptr);
}

TEST(ApplyProfile, RefusesAssumptionsOfNothing) {
  const auto refused = [](ApplyGuard guard) {
    auto applied = applyProfile(layers(), {BreakPolicy::none(), {std::move(guard)}});
    return applied ? std::string() : applied.error().message;
  };
  const auto yes = [](const Stack&) { return true; };
  EXPECT_NE(refused({"g", nullptr, {}}), "");
  EXPECT_NE(refused({"g", yes, {{"nobody", c10::TensorType::get()->withRequiresGrad(false)}}}), "");
  EXPECT_NE(refused({"g", yes, {{"x", nullptr}}}), "");
  EXPECT_NE(refused({"g", yes, {{"c", c10::TensorType::get()->withRequiresGrad(false)}}}), "");
  EXPECT_EQ(refused({"g", yes, {}}), "");
}

}  // namespace
}  // namespace faultline
