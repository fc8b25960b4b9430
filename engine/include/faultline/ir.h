// TorchScript IR as text that loses nothing, its verifier, structural comparison, names and inlining.
//
// libtorch's own printer and parser lose subgraphs, tensor constants, complete tensor types and profile nodes
// (pytorch/pytorch issue 55999 and others); these do not. Grammar: engine/ir/README.md.
// Threading: every function may run at once on different graphs.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "faultline/error.h"

namespace faultline {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// Reads one graph, `with prim::X_0 = graph(…)` tails included. Refuses with line and column what is not in
// the grammar and types or attributes that libtorch does not know; does not check schemas (verifyGraph does).
// `first_line` is what line numbers in errors start from, for text cut out of a larger file.
Result<std::shared_ptr<Graph>> readGraph(std::string_view text, size_t first_line = 1);

// Text that readGraph turns into an equal graph: readGraph(writeGraph(g)) == g, and writing that gives the
// same bytes. Unlike Graph::toString, subgraphs, constants, attributes and types are complete. Aborts on an
// attribute kind that no TorchScript node has.
std::string writeGraph(const Graph& graph);

// Blocks in blocks that text may have; deeper ones are refused, for libtorch walks them recursively.
inline constexpr size_t kMaxBlockNesting = 256;

// A type as it stands in IR text, complete where libtorch's printer is not: "Float(*, 3, strides=[3, 1],
// device=cpu)".
Result<c10::TypePtr> readType(std::string_view text);
std::string writeType(const c10::Type& type);

// What Graph::lint() lets pass: values used out of scope or before they are made, unknown operators, argument
// and result types against the schema, If/Loop block shapes, missing or misfitting subgraphs, constants whose
// value does not have their type. An error names the node. A graph that passes can be given to the
// interpreter (prim::profile nodes removed, subgraphs inlined or differentiated).
Result<void> verifyGraph(const Graph& graph);

// Empty when both graphs are the same up to value names: nodes, order, attributes (subgraphs and tensor
// constants by content), types of values, inputs, returns. Otherwise the first difference, as a sentence.
std::string describeGraphDifference(const Graph& a, const Graph& b);
inline bool graphsEqual(const Graph& a, const Graph& b) { return describeGraphDifference(a, b).empty(); }

// Replaces every node that carries attr::Subgraph (DifferentiableGraph, fusion groups, FunctionalGraph) by
// the body of the subgraph, to any depth, blocks included. Changes `graph`. A ReverseSubgraph is dropped.
void inlineSubgraphs(Graph& graph);

// Names of nodes as users write them: the op's name without its namespace, then "_1", "_2" … in graph order
// as in torch.fx; `aten::relu` twice is "relu", "relu_1". A trailing "_" of in-place ops is kept: "add_",
// "add__1". Constants and nodes without outputs have names too. Blocks are counted where they stand;
// subgraphs are not entered.
class NodeNames {
 public:
  explicit NodeNames(const Graph& graph);
  const std::string& of(const Node* node) const;                  // aborts for a node of another graph
  Node* find(std::string_view name) const;                        // nullptr: no such name
  const std::vector<std::string>& all() const { return names_; }  // in graph order

 private:
  std::vector<std::string> names_;
  std::vector<Node*> nodes_;
  std::unordered_map<const Node*, size_t> index_of_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace faultline
