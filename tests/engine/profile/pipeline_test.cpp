// Stock profiling as the source: ProfilingRecord, real runs, CreateAutodiffSubgraphs, then the protocol.
#include <torch/csrc/jit/passes/create_autodiff_subgraphs.h>
#include <torch/csrc/jit/passes/pass_manager.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/profiling_record.h>

#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

using torch::jit::Stack;

Stack runInterpreter(const std::shared_ptr<Graph>& graph, Stack stack) {
  torch::jit::Code code(graph, "profiled");
  torch::jit::InterpreterState(code).run(stack);
  return stack;
}

std::shared_ptr<Graph> requestExample() {
  return test::parse(R"(
graph(%x : Tensor, %c : bool):
  %m : Tensor = aten::mul(%x, %x)
  %a : Tensor = aten::tanh(%m)
  %r : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::relu(%a)
      %p2 : Tensor = aten::sigmoid(%p)
      -> (%p2)
    block1():
      %q : Tensor = aten::sigmoid(%a)
      %q2 : Tensor = aten::relu(%q)
      -> (%q2)
  return (%r)
)");
}

// Profiles one run (into the second arm), groups differentiable nodes; returns a graph of plain data.
std::shared_ptr<Graph> profiledByLibtorch() {
  auto graph = requestExample();
  auto record = torch::jit::ProfilingRecord::instrumentGraph(graph);
  runInterpreter(record->profiled_graph_, {at::ones({2, 3}).requires_grad_(), false});
  auto copy = record->profiled_graph_->copy();
  torch::jit::ProfilingRecord::removeProfileCounter(copy->block());
  torch::jit::CreateAutodiffSubgraphs(copy, 1);
  return copy;
}

TEST(StockPipeline, TheRequestsExample) {
  auto graph = profiledByLibtorch();
  const size_t pieces = [&] {
    size_t count = 0;
    for (Node* node : test::allNodes(*graph))
      count += node->kind() == torch::jit::prim::DifferentiableGraph ? 1 : 0;
    return count;
  }();
  ASSERT_EQ(pieces, 3u) << writeGraph(*graph);
  EXPECT_FALSE(validateProfileNode(graph));
  auto unprofiled = graph->copy();
  propagateProfileNode(graph);
  graph->lint();
  EXPECT_TRUE(validateProfileNode(graph)) << writeGraph(*graph);
  // Both consumers of the producer's output are fed by what was seen in one of them.
  const ProfileIndex index(*graph);
  for (size_t piece : {size_t{1}, size_t{2}}) {
    const Use use = test::useBy(*graph, "prim::DifferentiableGraph", piece);
    Node* node = index.retrieve(use);
    ASSERT_NE(node, nullptr) << piece << writeGraph(*graph);
    EXPECT_EQ(node, use.user->input(use.offset)->node());
    const ProfileLookup lookup = index.lookup(use);
    EXPECT_EQ(lookup.state, ProfileState::Concrete);
    EXPECT_TRUE(lookup.requires_grad.value);
    EXPECT_EQ(lookup.sizes.size(), 2u);
  }
  // The arm that never ran is dead: the If's result is what the other arm gave.
  const ProfileLookup result = index.lookup(Use(graph->return_node(), 0));
  EXPECT_EQ(result.state, ProfileState::Concrete);
  EXPECT_FALSE(result.conditional);
  removeProfileNodes(*graph);
  removeProfileNodes(*unprofiled);
  EXPECT_EQ(describeGraphDifference(*graph, *unprofiled), "");
  EXPECT_EQ(test::countProfiles(*graph), 0u);
}

// Clones are cloned from libtorch's own nodes, so that an instrumented graph that runs once more still runs.
TEST(StockPipeline, APropagatedGraphStillRuns) {
  auto graph = requestExample();
  auto record = torch::jit::ProfilingRecord::instrumentGraph(graph);
  const at::Tensor x = at::ones({2, 3}).requires_grad_();
  const Stack before = runInterpreter(record->profiled_graph_, {x, false});
  propagateProfileNode(record->profiled_graph_);
  const Stack after = runInterpreter(record->profiled_graph_, {x, true});
  EXPECT_TRUE(before[0].isTensor() && after[0].isTensor());
  // Profiling again: clones go first, for theirs would be the originals' types.
  EXPECT_GT(removeProfileClones(*record->profiled_graph_), 0u);
  const Stack again = runInterpreter(record->profiled_graph_, {x, true});
  EXPECT_TRUE(at::equal(after[0].toTensor(), again[0].toTensor()));
}

// A pass that libtorch's executor calls itself, with its own profile nodes still there.
TEST(StockPipeline, AsARegisteredPass) {
  auto graph = requestExample();
  size_t profiled = 0, valid = 0, answered = 0;
  const auto pass = torch::jit::registerPrePass([&](std::shared_ptr<Graph>& g) {
    if (test::countProfiles(*g) == 0) return;
    ++profiled;
    propagateProfileNode(g);
    valid += validateProfileNode(g) ? 1 : 0;
    const ProfileIndex index(*g);
    for (Node* node : test::allNodes(*g)) {
      if (node->kind() == torch::jit::prim::profile) continue;
      for (size_t i = 0; i < node->inputs().size(); ++i)
        answered += index.known(Use(node, i)).type != nullptr ? 1 : 0;
    }
  });
  const bool was = torch::jit::getProfilingMode().exchange(true);
  const bool executor_was = torch::jit::getExecutorMode().exchange(true);
  torch::jit::GraphExecutor executor(graph, "registered");
  const at::Tensor x = at::ones({2, 3}).requires_grad_();
  std::vector<at::Tensor> results, gradients;
  for (int run = 0; run < 4; ++run) {
    Stack stack = {x, run == 3};
    executor.run(stack);
    results.push_back(stack[0].toTensor());
    x.mutable_grad() = at::Tensor();
    results.back().sum().backward();
    gradients.push_back(x.grad());
  }
  torch::jit::getProfilingMode() = was;
  torch::jit::getExecutorMode() = executor_was;
  torch::jit::clearPrePass(pass);
  EXPECT_GT(profiled, 0u);
  EXPECT_EQ(valid, profiled);
  EXPECT_GT(answered, 0u);
  const Stack eager = runInterpreter(graph->copy(), {x, false});
  for (int run = 0; run < 3; ++run) {
    EXPECT_TRUE(at::allclose(results[static_cast<size_t>(run)], eager[0].toTensor()));
    EXPECT_TRUE(at::allclose(gradients[static_cast<size_t>(run)], gradients[0]));
  }
  EXPECT_TRUE(at::allclose(results[3], runInterpreter(graph->copy(), {x, true})[0].toTensor()));
}

}  // namespace
}  // namespace faultline
