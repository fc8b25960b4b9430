// Results that operands.def says no gradient comes from: each row against eager autograd.
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/autodiff/script_graph.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

using Result = std::pair<std::string, size_t>;

const std::set<Result>& rows() {
  static const std::set<Result> all{
#define FAULTLINE_CUT_OPERAND(op, argument)
#define FAULTLINE_CUT_RESULT(op, index) {op, index},
#include "engine/autodiff/operands.def"
#undef FAULTLINE_CUT_OPERAND
#undef FAULTLINE_CUT_RESULT
  };
  return all;
}

// How the result is had of a matrix x that requires grad.
const std::map<Result, std::string>& calls() {
  static const std::map<Result, std::string> all{
      {{"aten::eq", 0}, "torch.eq(x, x)"},
      {{"aten::ne", 0}, "torch.ne(x, x)"},
      {{"aten::lt", 0}, "torch.lt(x, x)"},
      {{"aten::le", 0}, "torch.le(x, x)"},
      {{"aten::gt", 0}, "torch.gt(x, x)"},
      {{"aten::ge", 0}, "torch.ge(x, x)"},
      {{"aten::isnan", 0}, "torch.isnan(x)"},
      {{"aten::isinf", 0}, "torch.isinf(x)"},
      {{"aten::isfinite", 0}, "torch.isfinite(x)"},
      {{"aten::logical_not", 0}, "torch.logical_not(x)"},
      {{"aten::logical_and", 0}, "torch.logical_and(x, x)"},
      {{"aten::logical_or", 0}, "torch.logical_or(x, x)"},
      {{"aten::logical_xor", 0}, "torch.logical_xor(x, x)"},
      {{"aten::argmax", 0}, "torch.argmax(x)"},
      {{"aten::argmin", 0}, "torch.argmin(x)"},
      {{"aten::argsort", 0}, "torch.argsort(x)"},
      {{"aten::zeros_like", 0}, "torch.zeros_like(x)"},
      {{"aten::ones_like", 0}, "torch.ones_like(x)"},
      {{"aten::full_like", 0}, "torch.full_like(x, 1.5)"},
      {{"aten::empty_like", 0}, "torch.empty_like(x)"},
      {{"aten::rand_like", 0}, "torch.rand_like(x)"},
      {{"aten::randn_like", 0}, "torch.randn_like(x)"},
      {{"aten::new_zeros", 0}, "x.new_zeros([2])"},
      {{"aten::new_ones", 0}, "x.new_ones([2])"},
      {{"aten::new_full", 0}, "x.new_full([2], 1.5)"},
      {{"aten::new_empty", 0}, "x.new_empty([2])"},
      {{"aten::detach", 0}, "x.detach()"},
      {{"aten::nonzero", 0}, "torch.nonzero(x)"},
      {{"aten::_dim_arange", 0}, "torch._dim_arange(x, 0)"},
      {{"aten::max", 1}, "torch.max(x, 1)[1]"},
      {{"aten::min", 1}, "torch.min(x, 1)[1]"},
      {{"aten::sort", 1}, "torch.sort(x)[1]"},
      {{"aten::topk", 1}, "torch.topk(x, 2)[1]"},
      {{"aten::median", 1}, "torch.median(x, 1)[1]"},
      {{"aten::mode", 1}, "torch.mode(x)[1]"},
      {{"aten::kthvalue", 1}, "torch.kthvalue(x, 1)[1]"},
      {{"aten::cummax", 1}, "torch.cummax(x, 0)[1]"},
      {{"aten::cummin", 1}, "torch.cummin(x, 0)[1]"},
      {{"aten::max_pool2d_with_indices", 1},
       "torch.max_pool2d_with_indices(x.view([1, 1, 3, 4]), [2, 2])[1]"},
  };
  return all;
}

bool requiresGrad(const std::string& call, const std::string& op) {
  auto graph = scriptGraph("f", "def f(x):\n    return " + call + "\n");
  bool has_op = false;
  for (const torch::jit::Node* node : graph->nodes()) has_op = has_op || node->kind().toQualString() == op;
  EXPECT_TRUE(has_op) << call << " does not call " << op;
  torch::jit::Stack stack{leaf({3, 4}, 1, at::kDouble)};
  torch::jit::InterpreterState(torch::jit::Code(graph, "f")).run(stack);
  return stack.at(0).toTensor().requires_grad();
}

TEST(CutResults, RequireNoGradInEager) {
  for (const Result& row : rows()) {
    const auto call = calls().find(row);
    ASSERT_NE(call, calls().end()) << row.first << " " << row.second << " has no call here";
    EXPECT_FALSE(requiresGrad(call->second, row.first)) << call->second;
  }
  EXPECT_EQ(rows().size(), calls().size());
}

TEST(CutResults, TheirNeighboursDo) {
  EXPECT_TRUE(requiresGrad("torch.sort(x)[0]", "aten::sort"));
  EXPECT_TRUE(requiresGrad("torch.cummax(x, 0)[0]", "aten::cummax"));
}

}  // namespace
}  // namespace faultline::test
