// The interpreter's fault, and that it is kept out.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/ir/interpretable.h"
#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

constexpr const char* kLoopAmongReturns = R"(graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor, %q : Tensor = prim::Loop(%n, %t, %x, %x)
    block0(%j : int, %y : Tensor, %z : Tensor):
      %a : Tensor = aten::cos(%y)
      %l : Tensor = prim::Loop(%n, %t, %x)
        block0(%i : int, %b : Tensor):
          %c : Tensor = aten::mul(%a, %b)
          -> (%t, %c)
      -> (%t, %a, %l)
  return (%p, %q)
)";

torch::jit::Stack interpret(const std::shared_ptr<torch::jit::Graph>& graph, torch::jit::Stack stack) {
  torch::jit::Code code(graph, "test");
  torch::jit::InterpreterState(code).run(stack);
  return stack;
}

TEST(Interpretable, AValueReadInALoopAmongOtherOperandsIsStillThere) {
  auto graph = readGraph(kLoopAmongReturns);
  ASSERT_TRUE(graph.has_value());
  const at::Tensor x = at::full({2}, 0.5);
  const auto out = interpret(interpretable(*graph), {x, 2});
  const at::Tensor a = x.cos().cos();
  EXPECT_TRUE(at::allclose(out[0].toTensor(), a));
  EXPECT_TRUE(at::allclose(out[1].toTensor(), a * a * x));
  // A libtorch that no longer throws needs none of this.
  EXPECT_ANY_THROW(interpret(*graph, {x, 2}));
}

TEST(Interpretable, OtherGraphsAreLeftAsTheyAre) {
  auto graph = readGraph("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n");
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(interpretable(*graph), *graph);
}

}  // namespace
}  // namespace faultline
