#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>

#include "engine/ir/nearest.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

std::shared_ptr<Graph> parse(const std::string& text) {
  auto graph = std::make_shared<Graph>();
  torch::jit::parseIR(text, graph.get());
  return graph;
}

TEST(NodeNames, NumbersEachOpInGraphOrder) {
  const auto graph = parse(R"IR(
graph(%x : Tensor, %c : bool):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::relu(%a)
      -> (%p)
    block1():
      %q : Tensor = aten::add_(%a, %a, %one)
      %r : Tensor = aten::relu(%q)
      -> (%r)
  %d : Tensor = aten::add_(%b, %b, %one)
  %e : Tensor = aten::relu(%d)
  return (%e)
)IR");
  const NodeNames names(*graph);
  EXPECT_EQ(names.all(), (std::vector<std::string>{"Constant", "relu", "If", "relu_1", "add_", "relu_2",
                                                   "add__1", "relu_3"}));
  EXPECT_EQ(names.of(graph->outputs()[0]->node()), "relu_3");
  EXPECT_EQ(names.find("relu_3"), graph->outputs()[0]->node());
  EXPECT_EQ(names.find("add__1"), graph->outputs()[0]->node()->input(0)->node());
  EXPECT_EQ(names.find("relu_4"), nullptr);
}

TEST(NodeNames, NodesWithoutOutputsHaveNames) {
  const auto graph = parse("graph(%x : Tensor):\n  prim::Print(%x)\n  prim::Print(%x)\n  return ()\n");
  const NodeNames names(*graph);
  EXPECT_EQ(names.all(), (std::vector<std::string>{"Print", "Print_1"}));
}

TEST(NodeNames, CountsOnWhereAnOpIsCalledLikeANumberedOne) {
  const auto graph = parse(R"IR(
graph(%x : Tensor):
  %a : Tensor = my::view_1(%x)
  %b : Tensor = my::view(%x)
  %c : Tensor = my::view(%x)
  %d : Tensor = my::view_1(%x)
  return (%a)
)IR");
  const NodeNames names(*graph);
  EXPECT_EQ(names.all(), (std::vector<std::string>{"view_1", "view", "view_2", "view_1_1"}));
}

TEST(NodeNames, OfAnEmptyGraphThereAreNone) {
  const auto graph = parse("graph(%x : Tensor):\n  return (%x)\n");
  const NodeNames names(*graph);
  EXPECT_TRUE(names.all().empty());
  EXPECT_EQ(names.find("relu"), nullptr);
}

TEST(NodeNamesDeathTest, AbortsForANodeOfAnotherGraph) {
  const auto graph = parse("graph(%x : Tensor):\n  %a : Tensor = aten::relu(%x)\n  return (%a)\n");
  const auto other = graph->copy();
  const NodeNames names(*graph);
  EXPECT_DEATH((void)names.of(other->outputs()[0]->node()), "not a node of this graph");
}

TEST(Nearest, SuggestsOnlyWhatIsClose) {
  const std::vector<std::string> ops = {"aten::relu", "aten::mul", "aten::mm"};
  EXPECT_EQ(didYouMean("aten::rleu", ops), " (did you mean 'aten::relu'?)");
  EXPECT_EQ(didYouMean("zzzzzzzzzzzz", ops), "");
  EXPECT_EQ(didYouMean("x", {}), "");
}

TEST(Nearest, OrAllThatThereIs) {
  EXPECT_EQ(nearestOrAll("rleu", {"gelu", "relu"}), "; the nearest is 'relu'");
  EXPECT_EQ(nearestOrAll("nosuch", {"gelu", "relu", "mul"}), "; there are gelu, relu and mul");
  EXPECT_EQ(nearestOrAll("nosuch", {"gelu"}), "; there is gelu");
  EXPECT_EQ(nearestOrAll("nosuch", {}), "");
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i) many.push_back("op_" + std::to_string(i));
  EXPECT_EQ(
      nearestOrAll("nosuch", many),
      "; there are op_0, op_1, op_2, op_3, op_4, op_5, op_6, op_7, op_8, op_9, op_10, op_11 and 988 more");
}

}  // namespace
}  // namespace faultline
