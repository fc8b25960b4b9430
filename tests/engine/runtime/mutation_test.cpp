// Graphs that write in place, broken and compiled around the writes, against eager.
#include <gtest/gtest.h>

#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

struct Written {
  const char* name;
  const char* ir;
};

std::ostream& operator<<(std::ostream& out, const Written& program) { return out << program.name; }

const Written written_programs[] = {
    {"ResultWrittenBetweenReaders", R"(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%a)
  %c : Tensor = aten::add_(%a, %w, %one)
  %d : Tensor = aten::mul(%a, %w)
  %e : Tensor = aten::cos(%d)
  return (%b, %e))"},
    {"ViewMadeBeforeAndReadAfterTheWrite", R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %v : Tensor = aten::transpose(%a, %zero, %one)
  %b : Tensor = aten::sin(%w)
  %c : Tensor = aten::mul_(%a, %b)
  %d : Tensor = aten::cos(%v)
  %e : Tensor = aten::tanh(%d)
  return (%e))"},
    {"WriteThroughAView", R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::mul(%x, %w)
  %v : Tensor = aten::select(%a, %zero, %zero)
  %b : Tensor = aten::sin(%v)
  %c : Tensor = aten::add_(%v, %b, %zero)
  %d : Tensor = aten::mul(%a, %a)
  return (%d, %b))"},
    {"SavedResultIsWritten", R"(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::tanh(%a)
  %c : Tensor = aten::add_(%b, %w, %one)
  %d : Tensor = aten::sin(%c)
  return (%d))"},
    // By exp too, which stands in the same piece.
    {"AsksForTheGradientOfAValueInside", R"(
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %h : Tensor = aten::tanh(%x)
  %k : Tensor = aten::exp(%h)
  %z : Tensor = aten::mul(%k, %h)
  %y : Tensor = aten::mul(%z, %w)
  %s : Tensor = aten::sum(%y, %none)
  %of : Tensor[] = prim::ListConstruct(%s)
  %by : Tensor[] = prim::ListConstruct(%h)
  %g : Tensor?[] = aten::grad(%of, %by, %none, %true, %true, %true)
  %zero : int = prim::Constant[value=0]()
  %first : Tensor? = aten::__getitem__(%g, %zero)
  %d : Tensor = prim::unchecked_cast(%first)
  %e : Tensor = aten::sin(%d)
  return (%e, %y))"},
    {"AccumulatesTheGradientOfAValueInside", R"(
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %h : Tensor = aten::tanh(%x)
  %k : Tensor = aten::exp(%h)
  %z : Tensor = aten::mul(%k, %h)
  %y : Tensor = aten::mul(%z, %w)
  %s : Tensor = aten::sum(%y, %none)
  %by : Tensor[] = prim::ListConstruct(%h)
   = aten::_backward(%s, %by, %none, %true, %false)
  %g : Tensor? = prim::grad(%h)
  %d : Tensor = prim::unchecked_cast(%g)
  %e : Tensor = aten::sin(%d)
  return (%e, %y))"},
    // softplus is computed where its size is asked for, by a part whose backward never asks for its gradient.
    {"WrittenAfterAnOpThatNoGradientComesTo", R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %twenty : int = prim::Constant[value=20]()
  %a : Tensor = aten::mul(%x, %w)
  %v : Tensor = aten::transpose(%a, %zero, %one)
  %s : Tensor = aten::softplus(%v, %one, %twenty)
  %q : Tensor = aten::sin(%w)
  %e : Tensor = aten::expand_as(%q, %s)
  %t : Tensor = aten::tanh(%e)
  %c : Tensor = aten::relu_(%v)
  %d : Tensor = aten::cos(%c)
  return (%t, %d))"},
    {"ListThatGrows", R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::sin(%x)
  %list : Tensor[] = prim::ListConstruct(%a)
  %b : Tensor = aten::cat(%list, %zero)
  %more : Tensor[] = aten::append(%list, %w)
  %c : Tensor = aten::cat(%list, %zero)
  %d : Tensor = aten::cos(%c)
  return (%d, %b))"},
    {"WriteInOneArm", R"(
graph(%x : Tensor, %w : Tensor):
  %yes : bool = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%a)
  %c : Tensor = prim::If(%yes)
    block0():
      %d : Tensor = aten::mul_(%a, %w)
      -> (%d)
    block1():
      -> (%b)
  %e : Tensor = aten::cos(%a)
  return (%c, %e, %b))"},
    {"WriteWithoutGradMode", R"(
graph(%x : Tensor, %w : Tensor):
  %off : bool = prim::Constant[value=0]()
  %was : bool = aten::is_grad_enabled()
  %a : Tensor = aten::mul(%x, %w)
  aten::set_grad_enabled(%off)
  %b : Tensor = aten::exp(%w)
  %c : Tensor = aten::mul_(%a, %b)
  aten::set_grad_enabled(%was)
  %d : Tensor = aten::sin(%a)
  %e : Tensor = aten::mul(%d, %w)
  return (%e))"},
    {"DetachedAndWritten", R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::detach(%a)
  %c : Tensor = aten::mul(%w, %a)
  %d : Tensor = aten::zero_(%b)
  %e : Tensor = aten::cos(%a)
  return (%c, %e))"},
    {"OutputIsWrittenLast", R"(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::cos(%a)
  %c : Tensor = aten::mul(%b, %w)
  %d : Tensor = aten::add_(%a, %c, %one)
  return (%a, %d, %c))"},
};

class WrittenPrograms : public testing::TestWithParam<Written> {};

TEST_P(WrittenPrograms, EqualEagerInEveryPolicyAndBackward) {
  auto inputs = [] { return torch::jit::Stack{leaf({3, 3}, 1), leaf({3, 3}, 2)}; };
  EXPECT_EQ(
      compareAll(parse(GetParam().ir), inputs,
                 {BreakPolicy::none(), BreakPolicy::every(1), BreakPolicy::every(2), BreakPolicy::every(3)}),
      "");
}

INSTANTIATE_TEST_SUITE_P(InPlace, WrittenPrograms, testing::ValuesIn(written_programs),
                         [](const auto& info) { return std::string(info.param.name); });

// Eager lets go of the relu before the leaf is transposed: what is used after that accumulates in the leaf's
// new shape.
TEST(Mutation, NothingIsHeldLongerThanInEager) {
  auto graph = parse(R"(
graph(%a : Tensor):
  %first : int = prim::Constant[value=1]()
  %second : int = prim::Constant[value=-2]()
  %none : NoneType = prim::Constant()
  %off : bool = prim::Constant[value=0]()
  %u : Tensor = aten::relu(%a)
  %on : bool = aten::is_grad_enabled()
  aten::set_grad_enabled(%off)
  %h : Tensor = aten::abs(%u)
  %t : Tensor = aten::transpose_(%a, %first, %second)
  aten::set_grad_enabled(%on)
  %s : Tensor = aten::sum(%t, %none)
  return (%s))");
  for (const BreakPolicy& policy :
       {BreakPolicy::none(), BreakPolicy::after({"relu"}), BreakPolicy::every(1)}) {
    auto plan = planBreaks(*graph, policy);
    ASSERT_TRUE(plan);
    auto compiled = compile(graph, *plan);
    ASSERT_TRUE(compiled);
    const at::Tensor a = at::ones({1, 2}).requires_grad_();
    torch::jit::Stack stack{a};
    compiled->run(stack);
    ASSERT_NO_THROW(stack[0].toTensor().backward());
    EXPECT_EQ(a.grad().sizes(), (std::vector<int64_t>{2, 1}));
  }
}

TEST(Written, InputsMayBeOneObject) {
  auto graph = parse(R"(
graph(%x : Tensor, %y : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %v : Tensor = aten::transpose(%x, %zero, %one)
  %a : Tensor = aten::mul(%v, %w)
  %b : Tensor = aten::add_(%y, %w, %one)
  %c : Tensor = aten::mul(%v, %w)
  return (%a, %c))");
  auto inputs = [] {
    const at::Tensor both = values({3, 3}, 1);
    return torch::jit::Stack{both, both, leaf({3, 3}, 2)};
  };
  EXPECT_EQ(compareAll(graph, inputs, {BreakPolicy::none(), BreakPolicy::every(1), BreakPolicy::every(2)}),
            "");
}

TEST(Written, AHookOnAWrittenSeamIsRefused) {
  auto graph = parse(written_programs[0].ir);
  auto plan = planBreaks(*graph, BreakPolicy::after({"mul"}));
  ASSERT_TRUE(plan);
  auto compiled = compile(graph, *plan);
  ASSERT_TRUE(compiled);
  auto done = compiled->onSeam("mul", [](const at::Tensor& grad) { return grad; });
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("written in place"), std::string::npos);
}

}  // namespace
}  // namespace faultline::test
