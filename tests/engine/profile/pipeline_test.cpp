// Stock profiling as the source: ProfilingRecord, real runs, CreateAutodiffSubgraphs, then the protocol.
#include <torch/csrc/jit/passes/create_autodiff_subgraphs.h>
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

}  // namespace
}  // namespace faultline
