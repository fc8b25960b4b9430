#include <gmock/gmock.h>
#include <torch/csrc/jit/passes/utils/subgraph_utils.h>
#include <torch/csrc/jit/runtime/autodiff.h>

#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

using testing::mustRead;

void expectInlined(const std::string& before, const std::string& after) {
  const auto graph = mustRead(before);
  inlineSubgraphs(*graph);
  graph->lint();
  const auto expected = mustRead(after);
  EXPECT_EQ(describeGraphDifference(*graph, *expected), "") << writeGraph(*graph);
}

TEST(Inline, ReplacesASubgraphByItsBody) {
  expectInlined(R"IR(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor, %b : Tensor = prim::DifferentiableGraph_0(%w, %x)
  %c : Tensor = aten::mul(%a, %b)
  return (%c)
with prim::DifferentiableGraph_0 = graph(%w : Tensor, %x : Tensor):
  %m : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::relu(%m)
  return (%r, %m)
)IR",
                R"IR(
graph(%x : Tensor, %w : Tensor):
  %m : Tensor = aten::mm(%x, %w)
  %r : Tensor = aten::relu(%m)
  %c : Tensor = aten::mul(%r, %m)
  return (%c)
)IR");
}

TEST(Inline, AnyDepthBlocksIncluded) {
  expectInlined(R"IR(
graph(%x : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %a : Tensor = prim::DifferentiableGraph_0(%x)
      -> (%a)
    block1():
      -> (%x)
  return (%r)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %k : bool = prim::Constant[value=1]()
  %y : Tensor = prim::If(%k)
    block0():
      %b : Tensor = prim::TensorExprGroup_0(%x, %x)
      -> (%b)
    block1():
      -> (%x)
  return (%y)
with prim::TensorExprGroup_0 = graph(%p : Tensor, %q : Tensor):
  %y : Tensor = aten::mul(%p, %q)
  %z : Tensor = prim::FunctionalGraph_0(%y)
  return (%z)
with prim::FunctionalGraph_0 = graph(%y : Tensor):
  %z : Tensor = aten::neg(%y)
  return (%z)
)IR",
                R"IR(
graph(%x : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %k : bool = prim::Constant[value=1]()
      %y : Tensor = prim::If(%k)
        block0():
          %m : Tensor = aten::mul(%x, %x)
          %n : Tensor = aten::neg(%m)
          -> (%n)
        block1():
          -> (%x)
      -> (%y)
    block1():
      -> (%x)
  return (%r)
)IR");
}

// A differentiated node returns its first f_real_outputs values; the others are for its backward graph.
TEST(Inline, DropsCapturedOutputsAndTheBackwardGraph) {
  expectInlined(R"IR(
graph(%x : Tensor):
  %a : Tensor = prim::DifferentiableGraph_0[ReverseSubgraph=@back, f_real_outputs=1, df_input_captured_outputs=[1]](%x)
  return (%a)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %m : Tensor = aten::neg(%x)
  %r : Tensor = aten::relu(%m)
  return (%r, %m)
with @back = graph(%g : Tensor, %m : Tensor):
  return (%g)
)IR",
                R"IR(
graph(%x : Tensor):
  %m : Tensor = aten::neg(%x)
  %r : Tensor = aten::relu(%m)
  return (%r)
)IR");
}

TEST(Inline, WhatLibtorchDifferentiated) {
  const auto graph = mustRead(R"IR(
graph(%x : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu)):
  %a : Tensor = prim::DifferentiableGraph_0(%x)
  return (%a)
with prim::DifferentiableGraph_0 = graph(%x : Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu)):
  %m : Tensor = aten::tanh(%x)
  %r : Tensor = aten::sigmoid(%m)
  return (%r)
)IR");
  Node* node = *graph->nodes().begin();
  auto subgraph = node->g(c10::attr::Subgraph);
  node->removeAttribute(c10::attr::Subgraph);
  auto gradient = torch::jit::differentiate(subgraph);
  ASSERT_GT(gradient.f->outputs().size(), 1U);
  node->g_(c10::attr::Subgraph, gradient.f);
  node->g_(c10::attr::ReverseSubgraph, gradient.df);
  node->i_(c10::attr::f_real_outputs, static_cast<int64_t>(gradient.f_real_outputs));
  testing::expectRoundTrip(*graph);
  inlineSubgraphs(*graph);
  graph->lint();
  std::vector<std::string> kinds;
  for (const Node* inner : graph->nodes()) {
    kinds.emplace_back(inner->kind().toQualString());
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"aten::tanh", "aten::sigmoid"}));
}

TEST(Inline, ReturnedInputsAndDoubledOutputs) {
  expectInlined(R"IR(
graph(%x : Tensor):
  %a : Tensor, %b : Tensor, %c : Tensor = prim::DifferentiableGraph_0(%x)
  return (%a, %b, %c)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%x, %y, %y)
)IR",
                R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%x, %y, %y)
)IR");
}

// Users know values by name: those of the outer graph stay.
TEST(Inline, KeepsTheNamesOfTheOuterGraph) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  %a : Tensor = prim::DifferentiableGraph_0(%y)
  %b : Tensor = prim::DifferentiableGraph_1(%a)
  return (%b)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
with prim::DifferentiableGraph_1 = graph(%x : Tensor):
  %y : Tensor = aten::tanh(%x)
  %z : Tensor = aten::exp(%y)
  return (%z)
)IR");
  inlineSubgraphs(*graph);
  std::vector<std::string> names;
  for (const Node* node : graph->nodes()) {
    names.push_back(std::string(node->kind().toUnqualString()) + " " + node->outputs()[0]->debugName());
  }
  EXPECT_EQ(names[0], "neg y");
  EXPECT_EQ(names.size(), 4U);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 4U);
  EXPECT_EQ(graph->inputs()[0]->debugName(), "x");
  testing::expectRoundTrip(*graph);
}

// A running DifferentiableGraph detaches its inputs; the inlined values are not detached.
TEST(Inline, ForgetsThatValuesInsideNeedNoGradient) {
  expectInlined(R"IR(
graph(%x : Float(2, requires_grad=1)):
  %a : Tensor(requires_grad=1) = prim::DifferentiableGraph_0(%x)
  return (%a)
with prim::DifferentiableGraph_0 = graph(%x : Tensor(requires_grad=0)):
  %p : Tensor = prim::profile[profiled_type=Float(2, requires_grad=0)](%x)
  %y : Float(2, requires_grad=0) = aten::relu(%p)
  %z : Tensor(requires_grad=0) = aten::neg(%y)
  return (%z)
)IR",
                R"IR(
graph(%x : Float(2, requires_grad=1)):
  %p : Tensor = prim::profile[profiled_type=Float(2, requires_grad=0)](%x)
  %y : Float(2) = aten::relu(%p)
  %z : Tensor(requires_grad=1) = aten::neg(%y)
  return (%z)
)IR");
}

// Its body runs later, and its output is a Future.
TEST(Inline, LeavesForksButEntersThem) {
  expectInlined(R"IR(
graph(%x : Tensor):
  %f : Future[Tensor] = prim::fork_0(%x)
  %r : Tensor = aten::wait(%f)
  return (%r)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = prim::DifferentiableGraph_0(%x)
  return (%y)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
)IR",
                R"IR(
graph(%x : Tensor):
  %f : Future[Tensor] = prim::fork_0(%x)
  %r : Tensor = aten::wait(%f)
  return (%r)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
)IR");
}

TEST(InlineDeathTest, AbortsWhereTheSubgraphDoesNotFit) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  %a : Tensor = prim::DifferentiableGraph_0(%x)
  return (%a)
with prim::DifferentiableGraph_0 = graph():
  %y : Tensor = my::op()
  return (%y)
)IR");
  EXPECT_DEATH(inlineSubgraphs(*graph), "does not fit");
}

}  // namespace
}  // namespace faultline
