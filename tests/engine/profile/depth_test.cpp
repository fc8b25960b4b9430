// Graphs that are deep or wide: nothing may recurse over nesting.
#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

using torch::jit::Block;

// `depth` Ifs in each other, each reading %x in its first arm; a profile node of %x in the innermost.
std::shared_ptr<Graph> nested(size_t depth, size_t write_at) {
  auto graph = std::make_shared<Graph>();
  Value* x = graph->insertNode(graph->create(torch::jit::aten::neg, {graph->addInput("v")}, 1))->output();
  Value* condition = graph->addInput("c");
  condition->setType(c10::BoolType::get());
  Block* block = graph->block();
  for (size_t i = 0; i < depth; ++i) {
    Node* node = graph->create(torch::jit::prim::If, {condition}, 0);
    node->insertBefore(block->return_node());
    block = node->addBlock();
    node->addBlock();
    Node* use = graph->create(torch::jit::aten::sin, {x}, 1);
    use->insertBefore(block->return_node());
    if (i == write_at) graph->create(torch::jit::aten::t_, {x}, 1)->insertBefore(block->return_node());
  }
  Node* profile = graph->create(torch::jit::prim::profile, {x}, 1);
  profile->ty_(torch::jit::attr::profiled_type, c10::TensorType::create(at::ones({2, 3})));
  profile->insertBefore(block->return_node());
  return graph;
}

// Nodes of a chain of Ifs, without the recursion of the common helper.
std::vector<Node*> chain(Graph& graph, c10::Symbol kind) {
  std::vector<Node*> found;
  std::vector<Block*> stack = {graph.block()};
  while (!stack.empty()) {
    Block* block = stack.back();
    stack.pop_back();
    for (Node* node : block->nodes()) {
      if (node->kind() == kind) found.push_back(node);
      for (Block* inner : node->blocks()) stack.push_back(inner);
    }
  }
  return found;
}

TEST(Depth, TenThousandNestedBlocks) {
  constexpr size_t kDepth = 10000;
  auto graph = nested(kDepth, kDepth / 2);
  propagateProfileNode(graph);
  EXPECT_TRUE(validateProfileNode(graph));
  const ProfileIndex index(*graph);
  const std::vector<Node*> uses = chain(*graph, torch::jit::aten::sin);
  ASSERT_EQ(uses.size(), kDepth);
  // Behind the write the sizes are known; before it all but them. The innermost node is in no way certain to
  // run.
  EXPECT_EQ(index.lookup(Use(uses.back(), 0)).state, ProfileState::Concrete);
  const ProfileLookup first = index.lookup(Use(uses.front(), 0));
  EXPECT_EQ(first.state, ProfileState::Partial);
  EXPECT_TRUE(first.dtype.known());
  EXPECT_TRUE(first.conditional);
  EXPECT_EQ(chain(*graph, torch::jit::prim::profile).size(), kDepth + 1);
  EXPECT_EQ(removeProfileNodes(*graph), kDepth + 1);
}

TEST(Depth, NestedLoopsWithAWrite) {
  constexpr size_t kDepth = 2000;
  auto graph = std::make_shared<Graph>();
  Value* x = graph->insertNode(graph->create(torch::jit::aten::neg, {graph->addInput("v")}, 1))->output();
  Value* trips = graph->insertConstant(2);
  Value* go = graph->insertConstant(true);
  Node* profile = graph->insertNode(graph->create(torch::jit::prim::profile, {x}, 1));
  profile->ty_(torch::jit::attr::profiled_type, c10::TensorType::create(at::ones({2, 3})));
  Block* block = graph->block();
  for (size_t i = 0; i < kDepth; ++i) {
    Node* node = graph->create(torch::jit::prim::Loop, {trips, go}, 0);
    node->insertBefore(block->return_node());
    block = node->addBlock();
    block->addInput()->setType(c10::IntType::get());
    block->registerOutput(go);
    graph->create(torch::jit::aten::sin, {x}, 1)->insertBefore(block->return_node());
  }
  graph->create(torch::jit::aten::t_, {x}, 1)->insertBefore(block->return_node());
  propagateProfileNode(graph);
  EXPECT_TRUE(validateProfileNode(graph));
  const ProfileIndex index(*graph);
  for (Node* use : chain(*graph, torch::jit::aten::sin)) {
    const ProfileLookup answer = index.lookup(Use(use, 0));
    EXPECT_TRUE(answer.dtype.known());
    EXPECT_FALSE(answer.sizes[0].known());
  }
}

}  // namespace
}  // namespace faultline
