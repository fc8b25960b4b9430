// Graphs that libtorch itself makes: they verify, and survive writing and reading.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/passes/create_autodiff_subgraphs.h>
#include <torch/csrc/jit/passes/create_functional_graphs.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/shape_analysis.h>
#include <torch/csrc/jit/runtime/autodiff.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/profiling_record.h>

#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

using testing::expectRoundTrip;
using testing::mustRead;

const std::vector<std::string> kPrograms = {
    R"(
def f(x, y):
    a = torch.sigmoid(x * y + 1.5)
    b = torch.tanh(a) - y.t().t()
    return (a * b).sum(), b
)",
    R"(
def f(x, y):
    z = x
    for i in range(3):
        if bool((z.sum() > 0).item()):
            z = z * y
        else:
            z = z.relu() + i
    return z
)",
    R"(
def f(x, y):
    xs = [x, y, x + y]
    t = (torch.cat(xs, 0), 1, "text")
    d = {"a": x, "b": y}
    n = 0
    while n < 3:
        n += t[1]
    return t[0] * n, d["a"], xs[1].size(0)
)",
    R"(
def f(x, y):
    z = x.clone()
    z.add_(y)
    z.mul_(2.0)
    w = torch.max(z, 1)
    print(w[0].shape)
    return w[0], torch.zeros([2, 3]).to(torch.device("cpu")), [float("inf"), -1e300]
)",
    R"(
def g(x, bias: Optional[Tensor]):
    if bias is not None:
        return x + bias
    return x

def f(x, y):
    a = g(x, None)
    b = g(a, y)
    assert b.dim() == 2, "two dimensions"
    return torch.dropout(b, 0.5, False)
)",
};

std::vector<std::shared_ptr<Graph>> compiled() {
  // Graphs point at the functions of their unit, even those that were inlined.
  static std::vector<std::shared_ptr<torch::jit::CompilationUnit>> units;
  std::vector<std::shared_ptr<Graph>> graphs;
  for (const std::string& source : kPrograms) {
    units.push_back(std::make_shared<torch::jit::CompilationUnit>());
    units.back()->define(std::nullopt, source, torch::jit::nativeResolver(), nullptr);
    auto graph = torch::jit::toGraphFunction(units.back()->get_function("f")).graph()->copy();
    torch::jit::Inline(*graph);
    graphs.push_back(graph);
  }
  return graphs;
}

void expectSound(const Graph& graph) {
  const auto verified = verifyGraph(graph);
  EXPECT_TRUE(verified) << verified.error().str() << "\n" << graph.toString();
  expectRoundTrip(graph);
}

torch::jit::Stack inputs() { return {at::rand({3, 3}).requires_grad_(), at::rand({3, 3}).requires_grad_()}; }

TEST(LibtorchGraphs, Compiled) {
  for (const auto& graph : compiled()) {
    expectSound(*graph);
  }
}

// Without tensor constants, libtorch's own text says all there is.
TEST(LibtorchGraphs, TextOfLibtorchIsRead) {
  for (const auto& graph : compiled()) {
    const auto again = mustRead(graph->toString());
    EXPECT_EQ(describeGraphDifference(*graph, *again), "") << graph->toString();
    for (size_t i = 0; i < graph->inputs().size(); ++i) {
      EXPECT_EQ(again->inputs()[i]->debugName(), graph->inputs()[i]->debugName());
    }
  }
}

TEST(LibtorchGraphs, ReadGraphsRunLikeTheOriginal) {
  for (const auto& graph : compiled()) {
    const auto again = mustRead(writeGraph(*graph));
    torch::jit::Stack expected = inputs();
    torch::jit::Stack found = expected;
    torch::jit::InterpreterState(torch::jit::Code(graph, "f")).run(expected);
    torch::jit::InterpreterState(torch::jit::Code(again, "f")).run(found);
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i].isTensor()) {
        EXPECT_TRUE(expected[i].toTensor().equal(found[i].toTensor()));
      }
    }
  }
}

TEST(LibtorchGraphs, Profiled) {
  for (const auto& graph : compiled()) {
    auto record = torch::jit::ProfilingRecord::instrumentGraph(graph);
    const auto profiled = record->graph();
    expectSound(*profiled);
    for (int run = 0; run < 2; ++run) {
      torch::jit::Stack stack = inputs();
      torch::jit::InterpreterState(torch::jit::Code(profiled, "f")).run(stack);
    }
    expectSound(*profiled);
    EXPECT_EQ(describeGraphDifference(*profiled, *mustRead(profiled->toString())), "")
        << profiled->toString();
  }
}

TEST(LibtorchGraphs, WithCompleteTypes) {
  for (const auto& graph : compiled()) {
    for (Value* input : graph->inputs()) {
      input->setType(c10::TensorType::create(at::rand({3, 3})));
    }
    torch::jit::PropagateInputShapes(graph);
    expectSound(*graph);
  }
}

TEST(LibtorchGraphs, DifferentiableSubgraphs) {
  size_t differentiated = 0;
  for (const auto& graph : compiled()) {
    for (Value* input : graph->inputs()) {
      input->setType(c10::TensorType::create(at::rand({3, 3}).requires_grad_()));
    }
    const auto original = graph->copy();
    const auto nodes = torch::jit::CreateAutodiffSubgraphs(graph, 1);
    expectSound(*graph);
    const auto text_again = mustRead(graph->toString());
    EXPECT_EQ(describeGraphDifference(*graph, *text_again), "") << graph->toString();
    for (Node* node : nodes) {
      auto subgraph = node->g(c10::attr::Subgraph);
      node->removeAttribute(c10::attr::Subgraph);
      auto gradient = torch::jit::differentiate(subgraph);
      node->g_(c10::attr::Subgraph, gradient.f);
      node->i_(c10::attr::f_real_outputs, static_cast<int64_t>(gradient.f_real_outputs));
      ++differentiated;
    }
    expectSound(*graph);
    inlineSubgraphs(*graph);
    expectSound(*graph);
    // The pass may reorder; the same operators are there, with what the backward pass captures besides.
    const NodeNames before(*original);
    const NodeNames after(*graph);
    EXPECT_GE(after.all().size(), before.all().size());
  }
  EXPECT_GT(differentiated, 3U);
}

TEST(LibtorchGraphs, FunctionalSubgraphs) {
  for (const auto& graph : compiled()) {
    torch::jit::CreateFunctionalGraphs(graph);
    expectSound(*graph);
    inlineSubgraphs(*graph);
    expectSound(*graph);
  }
}

// What the stock executor ends up with calls fallback functions, whose bodies no text holds.
TEST(LibtorchGraphs, OptimisedByTheStockExecutor) {
  const auto graph = compiled()[0];
  torch::jit::GraphExecutor executor(graph, "f");
  for (int run = 0; run < 3; ++run) {
    torch::jit::Stack stack = inputs();
    executor.run(stack);
    expectSound(*torch::jit::lastExecutedOptimizedGraph());
  }
}

}  // namespace
}  // namespace faultline
