// Tensors that are read very often, and the quick form of a question.
#include "engine/ir/uses.h"
#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

namespace aten = torch::jit::aten;
namespace prim = torch::jit::prim;

// %x, read `count` times: at the top, and every third time in an If.
std::shared_ptr<Graph> readOften(size_t count, bool write) {
  auto graph = std::make_shared<Graph>();
  Value* x = graph->insertNode(graph->create(aten::neg, {graph->addInput("v")}, 1))->output();
  Value* other = graph->addInput("o");
  Value* condition = graph->addInput("c")->setType(c10::BoolType::get());
  Node* profile = graph->insertNode(graph->create(prim::profile, {x}, 1));
  profile->ty_(torch::jit::attr::profiled_type, c10::TensorType::create(at::ones({2, 3})));
  for (size_t i = 0; i < count; ++i) {
    torch::jit::WithInsertPoint here(graph->block());
    if (i % 3 == 0) {
      Node* node = graph->insertNode(graph->create(prim::If, {condition}, 0));
      node->addBlock();
      node->addBlock();
      graph->setInsertPoint(node->blocks()[i % 2]);
    }
    graph->insertNode(graph->create(aten::mul, {x, other}, 1));
    if (write && i % 7 == 0) graph->insertNode(graph->create(aten::mul_, {x, other}, 1));
  }
  return graph;
}

TEST(Wide, ManyUsesOfOneTensor) {
  for (const bool write : {false, true}) {
    auto graph = readOften(4000, write);
    const auto original = graph->copy();
    propagateProfileNode(graph);
    graph->lint();
    EXPECT_TRUE(validateProfileNode(graph));
    size_t fed = 0;
    for (Node* node : test::allNodes(*graph)) {
      if (node->kind() != aten::mul) continue;
      const Node* feed = node->input(0)->node();
      ASSERT_EQ(feed->kind(), prim::profile);
      ASSERT_EQ(feed->owningBlock(), node->owningBlock());
      ++fed;
    }
    EXPECT_EQ(fed, 4000u);
    removeProfileClones(*graph);
    EXPECT_EQ(describeGraphDifference(*graph, *original), "");
    removeProfileNodes(*graph);
    removeProfileNodes(*original);
    EXPECT_EQ(describeGraphDifference(*graph, *original), "");
    EXPECT_EQ(test::countProfiles(*graph), 0u);
  }
}

// Profile nodes behind one another, the outer ones with many uses too.
TEST(Wide, ChainsOfProfileNodesAreRemoved) {
  auto graph = readOften(2000, false);
  for (Node* node : test::allNodes(*graph)) {
    if (node->kind() != prim::profile) continue;
    for (Node* user : test::allNodes(*graph)) {
      if (user->kind() == aten::mul) user->replaceInput(0, node->output());
    }
    break;
  }
  const size_t before = test::countProfiles(*graph);
  for (Node* node : test::allNodes(*graph)) {
    if (node->kind() != aten::mul) continue;
    Node* copy = graph->create(prim::profile, {node->input(0)}, 1);
    copy->ty_(torch::jit::attr::profiled_type, c10::TensorType::get());
    copy->insertBefore(node);
    node->replaceInput(0, copy->output());
  }
  EXPECT_EQ(removeProfileNodes(*graph), before + 2000);
  graph->lint();
  for (Node* node : test::allNodes(*graph)) {
    if (node->kind() == aten::mul) ASSERT_EQ(node->input(0)->node()->kind(), aten::neg);
  }
}

TEST(Wide, ReplacingUsesLeavesTheOthers) {
  auto graph = readOften(3000, false);
  Value* x = test::useBy(*graph, "aten::mul").user->input(0);
  Value* other = graph->inputs()[1];
  const size_t uses = x->uses().size();
  std::vector<Replacement> replacements;
  size_t turn = 0;
  for (Node* node : test::allNodes(*graph)) {
    if (node->kind() == aten::mul && turn++ % 2 == 0) replacements.push_back({Use(node, 0), other});
  }
  replaceUses(replacements);
  graph->lint();
  EXPECT_EQ(x->uses().size(), uses - 1500);
  turn = 0;
  for (Node* node : test::allNodes(*graph)) {
    if (node->kind() == aten::mul) ASSERT_EQ(node->input(0), turn++ % 2 == 0 ? other : x);
  }
  replaceAllUses(x, other);
  graph->lint();
  EXPECT_FALSE(x->hasUses());
}

TEST(Known, IsTheTypeThatLookupGives) {
  size_t asked = 0;
  for (const char* name : {"01-request-example.ir", "03-writes.ir", "05-if-join.ir", "06-loop-carried.ir",
                           "07-plumbing.ir", "11-dead-arm.ir", "13-no-grad.ir"}) {
    auto graph = test::parseCase(name);
    const ProfileIndex index(*graph);
    for (Node* node : test::allNodes(*graph)) {
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        const ProfileLookup lookup = index.lookup(Use(node, i));
        const ProfileKnown known = index.known(Use(node, i));
        ASSERT_EQ(known.type == nullptr, lookup.type == nullptr);
        if (known.type != nullptr) EXPECT_EQ(*known.type, *lookup.type);
        EXPECT_EQ(known.conditional, lookup.conditional);
        asked += known.type != nullptr ? 1 : 0;
      }
    }
  }
  EXPECT_GT(asked, 30u);
}

}  // namespace
}  // namespace faultline
