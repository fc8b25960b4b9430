// Graphs that libtorch itself makes: they verify, and survive writing and reading.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/passes/create_autodiff_subgraphs.h>
#include <torch/csrc/jit/passes/create_functional_graphs.h>
#include <torch/csrc/jit/passes/shape_analysis.h>
#include <torch/csrc/jit/runtime/autodiff.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/profiling_record.h>

#include "tests/engine/ir/ir_text.h"
#include "tests/engine/ir/libtorch_graphs.h"

namespace faultline {
namespace {

using testing::compiledGraphs;
using testing::expectSound;
using testing::matrixInputs;
using testing::mustRead;

TEST(LibtorchGraphs, Compiled) {
  for (const auto& graph : compiledGraphs()) {
    expectSound(*graph);
  }
}

// Without tensor constants, libtorch's own text says all there is.
TEST(LibtorchGraphs, TextOfLibtorchIsRead) {
  for (const auto& graph : compiledGraphs()) {
    const auto again = mustRead(graph->toString());
    EXPECT_EQ(describeGraphDifference(*graph, *again), "") << graph->toString();
    for (size_t i = 0; i < graph->inputs().size(); ++i) {
      EXPECT_EQ(again->inputs()[i]->debugName(), graph->inputs()[i]->debugName());
    }
  }
}

TEST(LibtorchGraphs, ReadGraphsRunLikeTheOriginal) {
  for (const auto& graph : compiledGraphs()) {
    const auto again = mustRead(writeGraph(*graph));
    torch::jit::Stack expected = matrixInputs();
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
  for (const auto& graph : compiledGraphs()) {
    auto record = torch::jit::ProfilingRecord::instrumentGraph(graph);
    const auto profiled = record->graph();
    expectSound(*profiled);
    for (int run = 0; run < 2; ++run) {
      torch::jit::Stack stack = matrixInputs();
      torch::jit::InterpreterState(torch::jit::Code(profiled, "f")).run(stack);
    }
    expectSound(*profiled);
    EXPECT_EQ(describeGraphDifference(*profiled, *mustRead(profiled->toString())), "")
        << profiled->toString();
  }
}

TEST(LibtorchGraphs, WithCompleteTypes) {
  for (const auto& graph : compiledGraphs()) {
    for (Value* input : graph->inputs()) {
      input->setType(c10::TensorType::create(at::rand({3, 3})));
    }
    torch::jit::PropagateInputShapes(graph);
    expectSound(*graph);
  }
}

TEST(LibtorchGraphs, DifferentiableSubgraphs) {
  size_t differentiated = 0;
  for (const auto& graph : compiledGraphs()) {
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
  for (const auto& graph : compiledGraphs()) {
    torch::jit::CreateFunctionalGraphs(graph);
    expectSound(*graph);
    inlineSubgraphs(*graph);
    expectSound(*graph);
  }
}

}  // namespace
}  // namespace faultline
