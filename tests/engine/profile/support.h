// Graphs and uses for the tests of the profile protocol.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "faultline/ir.h"
#include "faultline/profile.h"

namespace faultline::test {

inline std::string readFile(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::shared_ptr<Graph> parse(const std::string& text) {
  auto graph = readGraph(text);
  EXPECT_TRUE(graph.has_value()) << (graph ? "" : graph.error().str()) << "\n" << text;
  return graph ? *graph : std::make_shared<Graph>();
}

inline std::shared_ptr<Graph> parseCase(const std::string& name) {
  return parse(readFile(std::string(FAULTLINE_TEST_DATA) + "/profile/" + name));
}

// All nodes in graph order, return nodes at the end of their blocks, subgraphs included.
inline void collectNodes(torch::jit::Block* block, std::vector<Node*>& out) {
  for (Node* node : block->nodes()) {
    out.push_back(node);
    for (torch::jit::Block* inner : node->blocks()) collectNodes(inner, out);
    if (node->hasAttribute(torch::jit::attr::Subgraph)) {
      collectNodes(node->g(torch::jit::attr::Subgraph)->block(), out);
    }
  }
  out.push_back(block->return_node());
}

inline std::vector<Node*> allNodes(Graph& graph) {
  std::vector<Node*> nodes;
  collectNodes(graph.block(), nodes);
  return nodes;
}

// The value behind profile nodes.
inline const Value* behindProfiles(const Value* value) {
  while (value->node()->kind() == torch::jit::prim::profile && value->node()->inputs().size() == 1) {
    value = value->node()->input();
  }
  return value;
}

// The only use by a node of kind `user` (as in "aten::relu"; the n-th, from 0) among the top block's and its
// blocks'.
inline Use useBy(Graph& graph, const std::string& user, size_t n = 0, size_t offset = 0) {
  for (Node* node : allNodes(graph)) {
    if (node->kind().toQualString() == user && n-- == 0) return Use(node, offset);
  }
  ADD_FAILURE() << "no " << user << " in\n" << writeGraph(graph);
  return Use(graph.return_node(), 0);
}

inline size_t countProfiles(Graph& graph) {
  size_t count = 0;
  for (Node* node : allNodes(graph)) count += node->kind() == torch::jit::prim::profile ? 1 : 0;
  return count;
}

}  // namespace faultline::test
