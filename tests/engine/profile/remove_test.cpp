#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

std::vector<std::string> caseFiles() {
  return {"01-request-example.ir",
          "02-siblings-and-nesting.ir",
          "03-writes.ir",
          "04-write-through-a-view.ir",
          "05-if-join.ir",
          "06-loop-carried.ir",
          "07-plumbing.ir",
          "08-removal.ir",
          "10-loop-back-edge.ir",
          "11-dead-arm.ir",
          "12-same-object.ir",
          "13-no-grad.ir",
          "14-backward-and-monotone.ir"};
}

TEST(RemoveProfileNodes, TakesAllThatAProfilePassMayLeaveBehind) {
  auto graph = test::parseCase("08-removal.ir");
  EXPECT_EQ(removeProfileNodes(*graph), 5u);  // three nodes, one pair of numbers, one counter
  auto plain = test::parse(R"(
graph(%x : Tensor, %k : int, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %s : Tensor = aten::add(%x, %x, %k)
      -> (%s)
    block1():
      %g : Tensor = prim::DifferentiableGraph_0(%x)
      -> (%g)
  return (%r)
with prim::DifferentiableGraph_0 = graph(%a : Tensor):
  %z : Tensor = aten::sigmoid(%a)
  return (%z)
)");
  EXPECT_EQ(describeGraphDifference(*graph, *plain), "");
  EXPECT_EQ(removeProfileNodes(*graph), 0u);
}

TEST(RemoveProfileNodes, EntersReverseSubgraphs) {
  auto graph = test::parseCase("08-removal.ir");
  auto reverse = test::parse(R"(
graph(%g : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=0, device=cpu)](%g)
  %n : Tensor = aten::neg(%p)
  return (%n)
)");
  test::useBy(*graph, "prim::DifferentiableGraph").user->g_(torch::jit::attr::ReverseSubgraph, reverse);
  EXPECT_EQ(removeProfileNodes(*graph), 6u);
  EXPECT_EQ(test::countProfiles(*reverse), 0u);
}

TEST(RemoveProfileNodes, TheRequestsExampleEqualsTheOneWithoutNodes) {
  auto graph = test::parseCase("01-request-example.ir");
  propagateProfileNode(graph);
  removeProfileNodes(*graph);
  auto plain = test::parse(R"(
graph(%x : Tensor, %c : bool):
  %a : Tensor = prim::DifferentiableGraph_0(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %p : Tensor = prim::DifferentiableGraph_1(%a)
      -> (%p)
    block1():
      %q : Tensor = prim::DifferentiableGraph_2(%a)
      -> (%q)
  return (%r)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %m : Tensor = aten::mul(%x, %x)
  %out : Tensor = aten::tanh(%m)
  return (%out)
with prim::DifferentiableGraph_1 = graph(%a : Tensor):
  %u : Tensor = aten::relu(%a)
  return (%u)
with prim::DifferentiableGraph_2 = graph(%a : Tensor):
  %u : Tensor = aten::sigmoid(%a)
  return (%u)
)");
  EXPECT_EQ(describeGraphDifference(*graph, *plain), "");
}

TEST(RemoveProfileNodes, UndoesPropagation) {
  for (const std::string& file : caseFiles()) {
    auto propagated = test::parseCase(file);
    auto untouched = test::parseCase(file);
    propagateProfileNode(propagated);
    EXPECT_GT(test::countProfiles(*propagated), 0u) << file;
    auto clones_gone = propagated->copy();
    removeProfileClones(*clones_gone);
    EXPECT_EQ(describeGraphDifference(*clones_gone, *untouched), "") << file;
    removeProfileNodes(*propagated);
    removeProfileNodes(*untouched);
    EXPECT_EQ(describeGraphDifference(*propagated, *untouched), "") << file;
    EXPECT_EQ(test::countProfiles(*propagated), 0u) << file;
  }
}

// What has no input to fall back on stays where it is used: the graph would not be one any more.
TEST(RemoveProfileNodes, LeavesAMisshapenNodeThatIsUsed) {
  auto graph = std::make_shared<Graph>();
  Node* node = graph->insertNode(graph->create(torch::jit::prim::profile, 1));
  graph->registerOutput(node->output());
  EXPECT_EQ(removeProfileNodes(*graph), 0u);
  graph->eraseOutput(0);
  EXPECT_EQ(removeProfileNodes(*graph), 1u);
}

}  // namespace
}  // namespace faultline
