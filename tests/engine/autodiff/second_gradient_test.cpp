// Second gradients of whole chains: values that a later op keeps must lead back, whatever formula made them.
#include <gtest/gtest.h>

#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

// Results that formulas give back as they are, as views, out of tuples, or after a forward of their own.
class KeptResult : public testing::TestWithParam<const char*> {};

TEST_P(KeptResult, LeadsBackInASecondBackward) {
  const std::string op = GetParam();
  for (const char* last : {"aten::sigmoid(%b)", "aten::tanh(%b)", "aten::sin(%b)", "aten::abs(%b)"}) {
    SCOPED_TRACE(last);
    auto graph = parse(fmt::format(R"(
graph(%x : Tensor):
  %false : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %eps : float = prim::Constant[value=0.1]()
  %sizes : int[] = prim::Constant[value=[4]]()
  %dims : int[] = prim::Constant[value=[1, 0]]()
  %shape : int[] = prim::Constant[value=[2, -1]]()
  %a : Tensor = {}
  %b : Tensor = aten::sin(%a)
  %c : Tensor = {}
  %d : Tensor = aten::neg(%c)
  return (%d))",
                                   op, last));
    CompareOptions options;
    options.stitched = false;
    options.tolerance = 1e-9;
    auto inputs = [] { return torch::jit::Stack{leaf({3, 4}, 1, at::kDouble)}; };
    EXPECT_EQ(compareAll(graph, inputs, {BreakPolicy::none(), BreakPolicy::every(1)}, options), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, KeptResult,
                         testing::Values("aten::transpose(%x, %zero, %one)", "aten::permute(%x, %dims)",
                                         "aten::view(%x, %shape)", "aten::unsqueeze(%x, %zero)",
                                         "aten::t(%x)", "aten::exp(%x)", "aten::softmax(%x, %one, %none)",
                                         "aten::layer_norm(%x, %sizes, %none, %none, %eps, %false)",
                                         "aten::dropout(%x, %eps, %false)"));

// `b` is kept for the gradient of `y`; its own gradient leads nowhere, since rounding has none.
TEST(KeptValue, WhoseGradientLeadsNowhereHasNone) {
  for (const char* op : {"aten::floor(%x)", "aten::round(%x)", "aten::div(%x, %two, %floor)"}) {
    SCOPED_TRACE(op);
    auto graph = parse(fmt::format(R"(
graph(%x : Tensor, %y : Tensor):
  %two : int = prim::Constant[value=2]()
  %floor : str = prim::Constant[value="floor"]()
  %a : Tensor = {}
  %b : Tensor = aten::sin(%a)
  %c : Tensor = aten::mul(%b, %y)
  %d : Tensor = aten::mul(%c, %b)
  return (%d))",
                                   op));
    CompareOptions options;
    options.stitched = false;
    auto inputs = [] {
      return torch::jit::Stack{leaf({3, 4}, 1, at::kDouble), leaf({3, 4}, 2, at::kDouble)};
    };
    EXPECT_EQ(compareAll(graph, inputs, {BreakPolicy::none(), BreakPolicy::every(1)}, options), "");
  }
}

}  // namespace
}  // namespace faultline::test
