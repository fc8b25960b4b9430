// Seams, piece nodes and hooks of a running compiled graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/runtime/compiled_graph.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const char* seam_program = R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%a)
  %c : Tensor = aten::mul(%b, %v)
  %d : Tensor = aten::cos(%c)
  return (%d))";

torch::jit::Stack inputs() { return {leaf({3}, 1), leaf({3}, 2), leaf({3}, 3)}; }

CompiledGraph compiledAfter(const char* ir, std::vector<std::string> names,
                            const CompileOptions& options = {}) {
  auto graph = parse(ir);
  auto plan = planBreaks(*graph, BreakPolicy::after(std::move(names)));
  EXPECT_TRUE(plan);
  auto compiled = compile(graph, *plan, options);
  EXPECT_TRUE(compiled);
  return *compiled;
}

TEST(Seam, IsTheLiveValueOfTheLastRun) {
  const CompiledGraph compiled = compiledAfter(seam_program, {"sin"});
  EXPECT_FALSE(compiled.seam("sin").defined()) << "before the first run";
  torch::jit::Stack stack = inputs();
  const at::Tensor x = stack[0].toTensor(), w = stack[1].toTensor();
  compiled.run(stack);
  const at::Tensor seam = compiled.seam("sin");
  ASSERT_TRUE(seam.defined());
  EXPECT_TRUE(at::allclose(seam, at::sin(x * w)));
  seam.retain_grad();
  stack[0].toTensor().sum().backward();
  EXPECT_TRUE(seam.grad().defined());
  EXPECT_FALSE(compiled.seam("mul").defined()) << "crosses no cut";
}

TEST(Seam, HookSeesTheWholeGradientBeforeItsProducerRuns) {
  for (bool eager_producer : {false, true}) {
    CompileOptions options;
    if (eager_producer) {
      options.force_eager = {0};
    }
    CompiledGraph compiled = compiledAfter(seam_program, {"sin"}, options);
    ASSERT_TRUE(compiled.onSeam("sin", [&](const at::Tensor& grad) {
      compiled.timeline().hook("sin");
      return at::zeros_like(grad);
    }));
    for (int run = 0; run < 2; ++run) {
      compiled.timeline().clear();
      torch::jit::Stack stack = inputs();
      const at::Tensor w = stack[1].toTensor(), v = stack[2].toTensor();
      compiled.run(stack);
      stack[0].toTensor().sum().backward();
      EXPECT_TRUE(at::equal(w.grad(), at::zeros({3}))) << "the hook's result is what goes on";
      EXPECT_FALSE(at::equal(v.grad(), at::zeros({3})));
      std::vector<std::string> order;
      for (const TimelineEvent& event : compiled.timeline().events()) {
        if (event.what != TimelineEvent::What::Forward) {
          order.push_back(event.name + std::to_string(event.piece));
        }
      }
      EXPECT_THAT(order, ElementsAre("1", "sin1", "0"));
    }
  }
}

TEST(Seam, UndefinedResultKeepsTheGradient) {
  CompiledGraph compiled = compiledAfter(seam_program, {"sin"});
  ASSERT_TRUE(compiled.onSeam("sin", [](const at::Tensor&) { return at::Tensor(); }));
  EXPECT_EQ(
      difference(observe(interpreter(parse(seam_program)), inputs, {}), observe(lean(compiled), inputs, {})),
      "");
}

TEST(Seam, RefusesWhatIsNoSeam) {
  CompiledGraph compiled = compiledAfter(seam_program, {"sin"});
  auto refused = compiled.onSeam("cos", [](const at::Tensor& grad) { return grad; });
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("what does: sin"));
}

// z=x*w; b=sin(z); c=b*b | d=cos(b); e=d*c: `b` is used in the piece that makes it.
const char* used_inside = R"(
graph(%x : Tensor, %w : Tensor):
  %z : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%z)
  %c : Tensor = aten::mul(%b, %b)
  %d : Tensor = aten::cos(%b)
  %e : Tensor = aten::mul(%d, %c)
  return (%e))";

TEST(Seam, RefusesAValueThatItsOwnPieceUses) {
  CompiledGraph compiled = compiledAfter(used_inside, {"mul_1"});
  auto refused = compiled.onSeam("sin", [](const at::Tensor& grad) { return grad; });
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("mul_1"));
  EXPECT_TRUE(compiled.onSeam("mul_1", [](const at::Tensor& grad) { return grad; }));
}

// What a list gives back is the tensor that was put into it: it is used by its first name too.
TEST(Seam, RefusesATensorThatHasAnotherName) {
  CompiledGraph compiled = compiledAfter(R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %b : Tensor = aten::mul(%x, %w)
  %l : Tensor[] = prim::ListConstruct(%b)
  %c : Tensor = aten::__getitem__(%l, %zero)
  %d : Tensor = aten::sin(%b)
  %e : Tensor = aten::mul(%d, %c)
  return (%e))",
                                         {"__getitem__"});
  auto refused = compiled.onSeam("__getitem__", [](const at::Tensor& grad) { return grad; });
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("the same tensor as a value that is used elsewhere"));
}

TEST(Seam, CutRightAfterItAHookThatReturnsZeroStopsEverything) {
  CompiledGraph compiled = compiledAfter(used_inside, {"sin", "mul_1"});
  ASSERT_TRUE(compiled.onSeam("sin", [](const at::Tensor& grad) { return at::zeros_like(grad); }));
  torch::jit::Stack stack = {values({3}, 1), leaf({3}, 2)};
  const at::Tensor w = stack[1].toTensor();
  compiled.run(stack);
  stack[0].toTensor().sum().backward();
  EXPECT_TRUE(at::equal(w.grad(), at::zeros({3})));
}

TEST(Seam, AHookThatThrowsLeavesEarlierPiecesUntouched) {
  CompiledGraph compiled = compiledAfter(seam_program, {"sin"});
  ASSERT_TRUE(
      compiled.onSeam("sin", [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("hook"); }));
  torch::jit::Stack stack = inputs();
  const at::Tensor w = stack[1].toTensor(), v = stack[2].toTensor();
  compiled.run(stack);
  EXPECT_THROW(stack[0].toTensor().sum().backward(), std::runtime_error);
  EXPECT_TRUE(v.grad().defined());
  EXPECT_FALSE(w.grad().defined());
}

TEST(PieceNode, IsTheNodeOfTheLastRunOfThisThread) {
  const CompiledGraph compiled = compiledAfter(seam_program, {"sin"});
  EXPECT_EQ(compiled.pieceNode(0), nullptr);
  torch::jit::Stack stack = inputs();
  compiled.run(stack);
  ASSERT_NE(compiled.pieceNode(0), nullptr);
  ASSERT_NE(compiled.pieceNode(1), nullptr);
  EXPECT_EQ(compiled.pieceNode(2), nullptr);
  EXPECT_EQ(compiled.pieceNode(1), stack[0].toTensor().grad_fn().get());
  EXPECT_EQ(compiled.pieceNode(0), compiled.seam("sin").grad_fn().get());
  EXPECT_EQ(compiled.pieceNode(0)->name(), "PieceBackward0");
  EXPECT_LT(compiled.pieceNode(0)->sequence_nr(), compiled.pieceNode(1)->sequence_nr());
  std::thread([&] { EXPECT_EQ(compiled.pieceNode(0), nullptr) << "another thread has not run"; }).join();
  at::NoGradGuard no_grad;
  torch::jit::Stack again = inputs();
  compiled.run(again);
  EXPECT_EQ(compiled.pieceNode(0), nullptr) << "nothing requires grad";
}

TEST(PieceNode, OfAnEagerPieceIsItsLastNode) {
  CompileOptions options;
  options.force_eager = {0};
  const CompiledGraph compiled = compiledAfter(seam_program, {"sin"}, options);
  torch::jit::Stack stack = inputs();
  compiled.run(stack);
  ASSERT_NE(compiled.pieceNode(0), nullptr);
  EXPECT_THAT(compiled.pieceNode(0)->name(), HasSubstr("SinBackward"));
}

// Order of events of a backward, as "b2" and "h:name".
std::vector<std::string> backwardEvents(const CompiledGraph& compiled) {
  std::vector<std::string> events;
  for (const TimelineEvent& event : compiled.timeline().events()) {
    if (event.what == TimelineEvent::What::Backward) {
      events.push_back("b" + std::to_string(event.piece));
    } else if (event.what == TimelineEvent::What::Hook) {
      events.push_back("h:" + event.name);
    }
  }
  return events;
}

TEST(Order, IndependentBranchesRunInDescendingOrder) {
  const CompiledGraph compiled = compiledAfter(R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::cos(%w)
  %c : Tensor = aten::exp(%v)
  return (%a, %b, %c))",
                                               {"sin", "cos"});
  torch::jit::Stack stack = inputs();
  std::vector<std::string> names = {"x", "w", "v"};
  for (size_t i = 0; i < 3; ++i) {
    stack[i].toTensor().register_hook([&, i](const at::Tensor&) { compiled.timeline().hook(names[i]); });
  }
  compiled.run(stack);
  (stack[0].toTensor() + stack[1].toTensor() + stack[2].toTensor()).sum().backward();
  EXPECT_THAT(backwardEvents(compiled), ElementsAre("b2", "h:v", "b1", "h:w", "b0", "h:x"));
}

TEST(Order, AParameterOfTwoPiecesFiresOnceAfterTheEarlier) {
  const CompiledGraph compiled = compiledAfter(R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::mul(%a, %v)
  %c : Tensor = aten::mul(%b, %w)
  return (%c))",
                                               {"mul", "mul_1"});
  torch::jit::Stack stack = inputs();
  std::vector<std::string> names = {"x", "w", "v"};
  for (size_t i = 1; i < 3; ++i) {
    stack[i].toTensor().register_hook([&, i](const at::Tensor&) { compiled.timeline().hook(names[i]); });
  }
  compiled.run(stack);
  stack[0].toTensor().sum().backward();
  EXPECT_THAT(backwardEvents(compiled), ElementsAre("b2", "b1", "h:v", "b0", "h:w"));
}

TEST(Order, APieceOfSeveralPartsBeginsOnce) {
  const CompiledGraph compiled = compiledAfter(R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %m : Tensor = aten::max(%a, %x)
  %b : Tensor = aten::sin(%m)
  %c : Tensor = aten::cos(%m)
  %d : Tensor = aten::mul(%b, %c)
  return (%d, %c))",
                                               {"max"});
  torch::jit::Stack stack = {leaf({3}, 1), leaf({3}, 2)};
  compiled.run(stack);
  at::Tensor loss = (stack[0].toTensor() + stack[1].toTensor()).sum();
  loss.backward({}, /*keep_graph=*/true);
  loss.backward();
  EXPECT_THAT(backwardEvents(compiled), ElementsAre("b1", "b0", "b1", "b0")) << "one event per backward pass";
}

TEST(Seams, WhatAProgramMayAskTheGradientOfTakesNoHook) {
  const auto graph = parse(R"(
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %h : Tensor = aten::tanh(%x)
  %y : Tensor = aten::mul(%h, %w)
  %s : Tensor = aten::sum(%y, %none)
  %of : Tensor[] = prim::ListConstruct(%s)
  %by : Tensor[] = prim::ListConstruct(%h)
  %g : Tensor?[] = aten::grad(%of, %by, %none, %true, %true, %true)
  return (%g))");
  auto compiled = compile(graph, *planBreaks(*graph, BreakPolicy::every(1)));
  ASSERT_TRUE(compiled);
  const auto refused = compiled->onSeam("tanh", [](const at::Tensor&) { return at::Tensor(); });
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("aten::grad may ask for the gradient of 'tanh'"), std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace faultline::test
