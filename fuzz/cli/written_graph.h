// A graph as writeGraph prints it, with the line of every node: so that names of values and subgraphs in
// reports are those of the text, and comments can be put under a node.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline::cli {

class WrittenGraph {
 public:
  using Graph = torch::jit::Graph;
  using Node = torch::jit::Node;

  explicit WrittenGraph(const Graph& graph);

  // Nodes of the graph and its subgraphs in the order of the text; the returns of blocks and graphs too, as
  // their return nodes. A ReverseSubgraph is not entered.
  const std::vector<const Node*>& nodes() const { return nodes_; }
  // All of these abort for a node that is not among them.
  std::string kind(const Node* node) const;  // "aten::neg", "prim::DifferentiableGraph_1", "return"
  std::vector<std::string> inputs(const Node* node) const;  // "%a", …
  std::string output(const Node* node) const;               // the first: "%a"; empty: it has none
  const std::string& graphOf(const Node* node) const;  // "main", "DifferentiableGraph_0/TensorExprGroup_1"
  bool contains(const Node* node) const { return places_.count(node) != 0; }

  void comment(const Node* node, const std::string& text);  // under its line, in the order of calls
  std::string text() const;                                 // can be read again

 private:
  struct Place {
    size_t line = 0;
    std::string graph;
  };
  void walk(const Graph& graph, size_t line, const std::string& path);
  size_t walkBlock(const torch::jit::Block& block, size_t line, const std::string& path,
                   std::vector<const Node*>& with_subgraph);
  void place(const Node* node, size_t line, const std::string& path);
  std::string_view lineOf(const Node* node) const;  // without indentation

  std::vector<std::string> lines_;
  std::map<std::string, size_t> tails_;  // name as printed: its first line
  std::map<size_t, std::vector<std::string>> comments_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, Place> places_;
};

}  // namespace faultline::cli
