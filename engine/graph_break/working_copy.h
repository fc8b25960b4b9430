// The graph as planning and compiling see it: a copy with subgraphs and calls inlined, profile nodes gone,
// shapes forgotten. Made the same way by both, so that indices and names agree.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <c10/util/flat_hash_map.h>

#include "faultline/ir.h"

namespace faultline {

struct WorkingCopy {
  // Refuses a graph that cannot be run because of what stands in it (profile nodes that nothing can replace).
  static Result<std::shared_ptr<const WorkingCopy>> make(const Graph& original);
  // For looking only, while `original` lives: the same nodes, indices and names, but where there is nothing
  // to inline or to take out the graph is `original` itself, with its shapes. Copying it costs more than
  // planning.
  static Result<std::shared_ptr<const WorkingCopy>> look(const Graph& original);

  std::shared_ptr<Graph> graph;
  std::vector<c10::TypePtr> input_types;  // as the original had them
  std::vector<Node*> nodes;               // top level, in order
  std::vector<bool> constant;             // of `nodes`: copied into each piece, no op of its own
  ska::flat_hash_map<const Node*, size_t> index;
  NodeNames names;
  std::vector<std::string> input_names;  // without libtorch's ".1", where that is unique

  // Of `nodes[i]`: as names.of, without looking for it.
  const std::string& nameOf(size_t i) const { return names.all()[name_index_[i]]; }
  // Index in `nodes` of the top-level node that `node` is or stands in.
  size_t topLevel(const Node* node) const;
  bool isGraphInput(const Value* value) const;
  // Name of an input or of the op that makes the value: "x", "relu_1", "max_pool2d_with_indices.1".
  std::string valueName(const Value* value) const;
  // Fixed order of values: graph inputs first, then by the place of their node.
  bool before(const Value* a, const Value* b) const;

 private:
  std::vector<size_t> name_index_;
  WorkingCopy(const Graph& original, std::shared_ptr<Graph> normalised);
};

}  // namespace faultline
