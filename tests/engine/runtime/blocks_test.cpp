// Cuts inside Ifs and Loops: pieces run as often as their block does, with hooks between them, as in eager.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

using testing::ElementsAre;

struct Opened {
  const char* name;
  const char* ir;
  std::vector<const char*> policies;
};

std::ostream& operator<<(std::ostream& out, const Opened& program) { return out << program.name; }

const char* repeated = R"(
graph(%x : Tensor, %w : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %a : Tensor = aten::sin(%x)
  %r : Tensor = prim::Loop(%n, %true, %a)
    block0(%i : int, %h : Tensor):
      %b : Tensor = aten::mul(%h, %w)
      %c : Tensor = aten::tanh(%b)
      %d : Tensor = aten::mul(%c, %w)
      -> (%true, %d)
  %e : Tensor = aten::mul(%r, %w)
  return (%e))";

const Opened opened_programs[] = {
    {"LoopWithASharedParameter", repeated, {"after mul", "after tanh", "inside every 1", "after sin mul_1"}},
    {"IfWithDifferentArms",
     R"(
graph(%x : Tensor, %w : Tensor, %n : int):
  %two : int = prim::Constant[value=2]()
  %few : bool = aten::lt(%n, %two)
  %a : Tensor = aten::mul(%x, %w)
  %r : Tensor, %s : Tensor = prim::If(%few)
    block0():
      %b : Tensor = aten::sin(%a)
      %c : Tensor = aten::mul(%b, %w)
      -> (%c, %a)
    block1():
      %d : Tensor = aten::cos(%a)
      %e : Tensor = aten::mul(%d, %x)
      %f : Tensor = aten::tanh(%e)
      -> (%d, %f)
  %g : Tensor = aten::mul(%r, %s)
  return (%g, %r))",
     {"after sin", "after cos", "after sin mul_2", "inside every 2"}},
    {"IfInsideALoopThatStopsItself",
     R"(
graph(%x : Tensor, %w : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %r : Tensor, %k : int = prim::Loop(%n, %true, %x, %one)
    block0(%i : int, %h : Tensor, %j : int):
      %b : Tensor = aten::mul(%h, %w)
      %odd : int = aten::remainder(%i, %two)
      %is : bool = aten::eq(%odd, %one)
      %c : Tensor = prim::If(%is)
        block0():
          %d : Tensor = aten::sin(%b)
          %e : Tensor = aten::mul(%d, %w)
          -> (%e)
        block1():
          -> (%h)
      %j1 : int = aten::mul(%j, %two)
      %go : bool = aten::lt(%j1, %n)
      -> (%go, %c, %j1)
  %m : Tensor = aten::mul(%r, %k)
  return (%m, %r))",
     {"after mul", "after sin", "inside every 1"}},
    {"CarriedValuesThatChangePlaces",
     R"(
graph(%x : Tensor, %w : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %p : Tensor, %q : Tensor = prim::Loop(%n, %true, %x, %w)
    block0(%i : int, %h : Tensor, %g : Tensor):
      %b : Tensor = aten::sin(%h)
      %c : Tensor = aten::mul(%b, %g)
      -> (%true, %g, %c)
  %m : Tensor = aten::sub(%p, %q, %n)
  return (%m, %p))",
     {"after sin", "inside every 1"}},
    {"WritesInTheBodyAreReadInTheNextRound",
     R"(
graph(%x : Tensor, %w : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %v : Tensor = aten::transpose(%a, %one, %one)
  %list : Tensor[] = prim::ListConstruct(%w)
  %r : Tensor = prim::Loop(%n, %true, %w)
    block0(%i : int, %h : Tensor):
      %b : Tensor = aten::mul(%h, %v)
      %c : Tensor = aten::sin(%b)
      %d : Tensor = aten::add_(%a, %c, %one)
      %l : Tensor[] = aten::append(%list, %c)
      %e : Tensor = aten::cos(%d)
      -> (%true, %e)
  %f : Tensor = aten::stack(%list, %one)
  %g : Tensor = aten::mul(%r, %v)
  return (%f, %g))",
     {"after sin", "after add_", "inside every 1"}},
    {"GradModeChangesInTheBody",
     R"(
graph(%x : Tensor, %w : Tensor, %n : int):
  %two : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %h : Tensor):
      %first : bool = aten::lt(%i, %two)
      %b : Tensor = aten::mul(%h, %w)
       = aten::set_grad_enabled(%first)
      %c : Tensor = aten::sin(%b)
      %d : Tensor = aten::mul(%c, %w)
       = aten::set_grad_enabled(%true)
      %e : Tensor = aten::mul(%d, %b)
      -> (%true, %e)
  return (%r))",
     {"after mul", "after sin", "inside every 1"}},
};

class Blocks : public testing::TestWithParam<std::tuple<Opened, int>> {};

TEST_P(Blocks, EqualEagerInAllTheyDo) {
  const auto& [program, rounds] = GetParam();
  auto graph = parse(program.ir);
  std::vector<BreakPolicy> policies;
  for (const char* words : program.policies) {
    policies.push_back(*BreakPolicy::read(words));
    const auto plan = planBreaks(*graph, policies.back());
    ASSERT_TRUE(plan) << plan.error().str();
    EXPECT_FALSE(plan->opened.empty()) << words;
    // A piece ends with its block: a cut asked for there is refused, and stands all the same.
    for (const RefusedCut& cut : plan->refused) EXPECT_EQ(cut.code, "block_ends") << words;
  }
  const int trips = rounds;
  auto inputs = [trips] { return torch::jit::Stack{leaf({3, 3}, 1), leaf({3, 3}, 2), int64_t{trips}}; };
  CompareOptions options;
  EXPECT_EQ(compareAll(graph, inputs, policies, options), "");
  auto without = [trips] { return torch::jit::Stack{values({3, 3}, 1), leaf({3, 3}, 2), int64_t{trips}}; };
  EXPECT_EQ(compareAll(graph, without, policies, options), "");
}

std::string nameOfBlocks(const testing::TestParamInfo<std::tuple<Opened, int>>& info) {
  return fmt::format("{}{}", std::get<0>(info.param).name, std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Programs, Blocks,
                         testing::Combine(testing::ValuesIn(opened_programs), testing::Values(0, 1, 3)),
                         nameOfBlocks);

CompiledGraph brokenLoop() {
  auto graph = parse(repeated);
  auto plan = planBreaks(*graph, BreakPolicy::after({"tanh"}));
  EXPECT_TRUE(plan);
  EXPECT_EQ(plan->opened, std::vector<std::string>{"Loop"});
  EXPECT_EQ(plan->pieces.size(), 4u);
  EXPECT_EQ(plan->pieces[1].block, "body of Loop");
  EXPECT_EQ(plan->pieces[3].block, "");
  EXPECT_EQ(plan->cuts.size(), 3u);
  EXPECT_EQ(plan->cuts[0].after, "sin");
  EXPECT_EQ(plan->cuts[0].reason, "Loop is opened for a cut inside it");
  EXPECT_EQ(plan->cuts[1].after, "tanh");
  EXPECT_EQ(plan->cuts[2].after, "Loop");
  auto compiled = compile(graph, *plan);
  EXPECT_TRUE(compiled);
  return *compiled;
}

// "F1" forward of piece 1, "B1" backward; hooks by name.
std::vector<std::string> happened(const CompiledGraph& compiled) {
  std::vector<std::string> words;
  for (const TimelineEvent& event : compiled.timeline().events()) {
    const bool hook = event.what == TimelineEvent::What::Hook;
    words.push_back(hook ? event.name
                         : (event.what == TimelineEvent::What::Forward ? "F" : "B") +
                               std::to_string(event.piece));
  }
  return words;
}

TEST(BlockPieces, RunOncePerRoundWithHooksBetweenThem) {
  CompiledGraph compiled = brokenLoop();
  ASSERT_TRUE(compiled.onSeam("tanh", [&compiled](const at::Tensor&) {
    compiled.timeline().hook("tanh");
    return at::Tensor();
  }));
  const at::Tensor x = leaf({3}, 1), w = leaf({3}, 2);
  for (const auto& [tensor, name] : {std::pair{x, "x"}, {w, "w"}}) {
    tensor.register_hook([&compiled, name = name](const at::Tensor&) { compiled.timeline().hook(name); });
  }
  torch::jit::Stack stack{x, w, int64_t{2}};
  compiled.run(stack);
  EXPECT_EQ(compiled.seamValues("tanh").size(), 2u);
  stack[0].toTensor().sum().backward();
  EXPECT_THAT(happened(compiled), ElementsAre("F0", "F1", "F2", "F1", "F2", "F3", "B3", "B2", "tanh", "B1",
                                              "B2", "tanh", "B1", "w", "B0", "x"));
  const std::vector<TimelineEvent> events = compiled.timeline().events();
  // Each backward says of which round it is.
  EXPECT_EQ(events[7].forward, events[4].seq);
  EXPECT_EQ(events[10].forward, events[2].seq);
}

TEST(BlockPieces, AHookInsideReplacesTheGradientOfEachRound) {
  auto graph = parse(repeated);
  CompiledGraph compiled = brokenLoop();
  ASSERT_TRUE(compiled.onSeam("tanh", [](const at::Tensor& grad) { return grad * 2; }));
  const at::Tensor x = leaf({3}, 1), w = leaf({3}, 2), x1 = leaf({3}, 1), w1 = leaf({3}, 2);
  torch::jit::Stack stack{x, w, int64_t{3}};
  compiled.run(stack);
  stack[0].toTensor().sum().backward();
  at::Tensor h = at::sin(x1);
  for (int round = 0; round < 3; ++round) {
    const at::Tensor c = at::tanh(h * w1);
    c.register_hook([](const at::Tensor& grad) { return grad * 2; });
    h = c * w1;
  }
  (h * w1).sum().backward();
  EXPECT_TRUE(at::allclose(x.grad(), x1.grad()));
  EXPECT_TRUE(at::allclose(w.grad(), w1.grad()));
}

TEST(BlockPieces, RefusesAPlanThatOpensWhatTheGraphDoesNotHave) {
  auto plan = planBreaks(*parse(repeated), BreakPolicy::after({"tanh"}));
  ASSERT_TRUE(plan);
  BreakPlan other = *plan;
  other.opened = {"sin"};
  EXPECT_FALSE(compile(parse(repeated), other));
  other.opened.clear();
  EXPECT_FALSE(compile(parse(repeated), other));
  EXPECT_FALSE(planDot(*parse(repeated), other));
  EXPECT_TRUE(planDot(*parse(repeated), *plan));
}

}  // namespace
}  // namespace faultline::test
