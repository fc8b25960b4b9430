// What libtorch's passes leave behind is valid: a verifier that refuses it would report bugs that are none.
#include <gmock/gmock.h>
#include <torch/csrc/jit/passes/add_if_then_else.h>
#include <torch/csrc/jit/passes/bailout_graph.h>
#include <torch/csrc/jit/passes/batch_mm.h>
#include <torch/csrc/jit/passes/canonicalize.h>
#include <torch/csrc/jit/passes/canonicalize_graph_fuser_ops.h>
#include <torch/csrc/jit/passes/clear_undefinedness.h>
#include <torch/csrc/jit/passes/common_subexpression_elimination.h>
#include <torch/csrc/jit/passes/constant_pooling.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/create_autodiff_subgraphs.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/decompose_ops.h>
#include <torch/csrc/jit/passes/graph_fuser.h>
#include <torch/csrc/jit/passes/guard_elimination.h>
#include <torch/csrc/jit/passes/inplace_check.h>
#include <torch/csrc/jit/passes/insert_guards.h>
#include <torch/csrc/jit/passes/loop_unrolling.h>
#include <torch/csrc/jit/passes/lower_grad_of.h>
#include <torch/csrc/jit/passes/lower_tuples.h>
#include <torch/csrc/jit/passes/peephole.h>
#include <torch/csrc/jit/passes/peephole_list_idioms.h>
#include <torch/csrc/jit/passes/remove_expands.h>
#include <torch/csrc/jit/passes/remove_mutation.h>
#include <torch/csrc/jit/passes/requires_grad_analysis.h>
#include <torch/csrc/jit/passes/restore_mutation.h>
#include <torch/csrc/jit/passes/specialize_autogradzero.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/passes/update_differentiable_graph_requires_grad.h>
#include <torch/csrc/jit/passes/variadic_ops.h>
#include <torch/csrc/jit/runtime/autodiff.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>
#include <torch/csrc/jit/runtime/profiling_record.h>

#include "tests/engine/ir/ir_text.h"
#include "tests/engine/ir/libtorch_graphs.h"

namespace faultline {
namespace {

using testing::compiledGraphs;
using testing::expectSound;
using testing::matrixInputs;
namespace jit = torch::jit;

struct Pass {
  const char* name;
  std::function<void(std::shared_ptr<Graph>&)> run;
};

const std::vector<Pass>& passes() {
  static const std::vector<Pass> all = {
      {"EliminateDeadCode", [](auto& graph) { jit::EliminateDeadCode(graph); }},
      {"EliminateCommonSubexpression", [](auto& graph) { jit::EliminateCommonSubexpression(graph); }},
      {"ConstantPropagation", [](auto& graph) { jit::ConstantPropagation(graph); }},
      {"ConstantPooling", [](auto& graph) { jit::ConstantPooling(graph); }},
      {"PeepholeOptimize", [](auto& graph) { jit::PeepholeOptimize(graph); }},
      {"PeepholeOptimizeListIdioms", [](auto& graph) { jit::PeepholeOptimizeListIdioms(graph); }},
      {"Canonicalize", [](auto& graph) { graph = jit::Canonicalize(graph); }},
      {"CanonicalizeOps", [](auto& graph) { jit::CanonicalizeOps(graph); }},
      {"DecomposeOps", [](auto& graph) { jit::DecomposeOps(graph); }},
      {"BatchMM", [](auto& graph) { jit::BatchMM(graph); }},
      {"UnrollLoops", [](auto& graph) { jit::UnrollLoops(graph); }},
      {"PeelProfilingLoops", [](auto& graph) { jit::PeelProfilingLoops(graph); }},
      {"LowerSimpleTuples", [](auto& graph) { jit::LowerSimpleTuples(graph); }},
      {"RemoveListMutation", [](auto& graph) { jit::RemoveListMutation(graph); }},
      {"RemoveTensorMutation", [](auto& graph) { jit::RemoveTensorMutation(graph); }},
      {"UseVariadicCat", [](auto& graph) { jit::UseVariadicCat(graph); }},
      {"AddIfThenElseOp", [](auto& graph) { jit::AddIfThenElseOp(graph); }},
      {"FunctionalToInplaceActivation", [](auto& graph) { jit::FunctionalToInplaceActivation(graph); }},
      {"InsertBailOuts", [](auto& graph) { jit::InsertBailOuts(graph); }},
      {"RemoveExpands", [](auto& graph) { jit::RemoveExpands(graph); }},
      {"FuseGraph", [](auto& graph) { jit::FuseGraph(graph); }},
      {"PropagateRequiresGrad", [](auto& graph) { jit::PropagateRequiresGrad(graph); }},
      {"ClearUndefinedness", [](auto& graph) { jit::ClearUndefinedness(graph); }},
      {"CreateAutodiffSubgraphs", [](auto& graph) { jit::CreateAutodiffSubgraphs(graph, 1); }},
      {"runRequiredPasses", [](auto& graph) { jit::runRequiredPasses(graph); }},
  };
  return all;
}

TEST(LibtorchPasses, LeaveValidGraphs) {
  for (const Pass& pass : passes()) {
    SCOPED_TRACE(pass.name);
    for (auto& graph : compiledGraphs()) {
      pass.run(graph);
      expectSound(*graph);
    }
  }
}

TEST(LibtorchPasses, OneAfterTheOther) {
  for (auto& graph : compiledGraphs()) {
    for (const Pass& pass : passes()) {
      SCOPED_TRACE(pass.name);
      pass.run(graph);
      expectSound(*graph);
    }
    inlineSubgraphs(*graph);
    expectSound(*graph);
  }
}

std::shared_ptr<Graph> profiled(const std::shared_ptr<Graph>& graph) {
  auto record = jit::ProfilingRecord::instrumentGraph(graph);
  jit::Stack stack = matrixInputs();
  jit::InterpreterState(jit::Code(record->graph(), "f")).run(stack);
  jit::ProfilingRecord::removeProfileCounter(record->graph()->block());
  return record->graph();
}

TEST(LibtorchPasses, OnProfiledGraphs) {
  const std::vector<Pass> on_profiles = {
      {"nothing", [](auto&) {}},
      {"InsertGuards", [](auto& graph) { jit::InsertGuards(graph); }},
      {"InsertGuards and EliminateRedundantGuards",
       [](auto& graph) {
         jit::InsertGuards(graph);
         jit::EliminateRedundantGuards(graph);
       }},
      {"RemoveProfileNodesAndSpecializeTypes",
       [](auto& graph) { jit::RemoveProfileNodesAndSpecializeTypes(graph); }},
      {"CreateAutodiffSubgraphs",
       [](auto& graph) {
         for (Node* node : jit::CreateAutodiffSubgraphs(graph, 1)) {
           jit::UpdateDifferentiableGraphRequiresGrad(node->g(c10::attr::Subgraph), false);
         }
       }},
      {"runNooptPassPipeline", [](auto& graph) { jit::runNooptPassPipeline(graph); }},
  };
  for (const Pass& pass : on_profiles) {
    SCOPED_TRACE(pass.name);
    for (const auto& graph : compiledGraphs()) {
      auto instrumented = profiled(graph);
      pass.run(instrumented);
      expectSound(*instrumented);
    }
  }
}

TEST(LibtorchPasses, BackwardGraphs) {
  for (const auto& graph : compiledGraphs()) {
    for (Value* input : graph->inputs()) {
      input->setType(c10::TensorType::create(at::rand({3, 3}).requires_grad_()));
    }
    for (Node* node : jit::CreateAutodiffSubgraphs(graph, 1)) {
      auto subgraph = node->g(c10::attr::Subgraph);
      node->removeAttribute(c10::attr::Subgraph);
      auto gradient = jit::differentiate(subgraph);
      expectSound(*gradient.f);
      const auto sound = [](const Graph& backward) {
        const auto verified = verifyGraph(backward);
        EXPECT_TRUE(verified) << verified.error().str() << "\n" << backward.toString();
        testing::expectRoundTrip(backward);
      };
      sound(*gradient.df);
      jit::LowerGradOf(*gradient.df);
      sound(*gradient.df);
      jit::runRequiredPasses(gradient.df);
      sound(*gradient.df);
      jit::Inline(*gradient.df);
      jit::LowerSimpleTuples(gradient.df);
      jit::EliminateDeadCode(gradient.df);
      sound(*gradient.df);
      node->g_(c10::attr::Subgraph, gradient.f);
    }
  }
}

// After backward the last executed graph is that of the backward pass.
TEST(LibtorchPasses, OptimisedByTheStockExecutor) {
  for (const auto& graph : compiledGraphs()) {
    jit::GraphExecutor executor(graph, "f");
    for (int run = 0; run < 3; ++run) {
      jit::Stack stack = matrixInputs();
      executor.run(stack);
      expectSound(*jit::lastExecutedOptimizedGraph());
      at::Tensor first =
          stack[0].isTuple() ? stack[0].toTupleRef().elements()[0].toTensor() : stack[0].toTensor();
      if (first.requires_grad()) {
        first.sum().backward();
        expectSound(*jit::lastExecutedOptimizedGraph());
      }
    }
  }
}

}  // namespace
}  // namespace faultline
