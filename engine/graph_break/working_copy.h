// The graph as planning and compiling see it: a copy with subgraphs and calls inlined, profile nodes gone,
// shapes forgotten. Made the same way by both, so that indices and names agree.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <c10/util/flat_hash_map.h>

#include "faultline/ir.h"

namespace faultline {

struct WorkingCopy {
  // Refuses a graph that cannot be run because of what stands in it (profile nodes that nothing can replace).
  // `opened`: names of Ifs and Loops whose bodies are to be cut: their nodes stand in `nodes` too. Refuses a
  // name that is none, or that stands in one that is not opened.
  static Result<std::shared_ptr<const WorkingCopy>> make(const Graph& original,
                                                         const std::vector<std::string>& opened = {});
  // For looking only, while `original` lives: the same nodes, indices and names, but where there is nothing
  // to inline or to take out the graph is `original` itself, with its shapes. Copying it costs more than
  // planning.
  static Result<std::shared_ptr<const WorkingCopy>> look(const Graph& original,
                                                         const std::vector<std::string>& opened = {});

  std::shared_ptr<Graph> graph;
  std::vector<c10::TypePtr> input_types;  // as the original had them
  // "Top level", in order. Those of an opened If or Loop come right before it.
  std::vector<Node*> nodes;
  std::vector<bool> constant;  // of `nodes`: copied into each piece, no op of its own
  std::vector<bool> opened;    // of `nodes`: an If or Loop whose bodies are cut; stands in no piece
  ska::flat_hash_map<const Node*, size_t> index;
  NodeNames names;
  std::vector<std::string> input_names;  // without libtorch's ".1", where that is unique

  // Of `nodes[i]`: as names.of, without looking for it.
  const std::string& nameOf(size_t i) const { return names.all()[name_index_[i]]; }
  // Place of `nodes[i]` among all nodes of the graph, those in blocks too, in the order of names.
  size_t placeAmongAll(size_t i) const { return name_index_[i]; }
  // Index in `nodes` of the top-level node that `node` is or stands in; for the return of an opened block,
  // its If or Loop.
  size_t topLevel(const Node* node) const;
  bool opensAny() const { return !blocks_.empty(); }
  bool isGraphInput(const Value* value) const;
  bool isBlockInput(const Value* value) const;                  // of an opened block
  size_t beginOf(const torch::jit::Block* opened_block) const;  // index of its first node
  // "body of Loop", "then of If_1 in body of Loop"; empty: the graph's own block.
  std::string blockName(const torch::jit::Block* block) const;
  // Name of an input or of the op that makes the value: "x", "relu_1", "max_pool2d_with_indices.1".
  std::string valueName(const Value* value) const;
  // Fixed order of values: graph inputs first, then by the place of their node.
  bool before(const Value* a, const Value* b) const { return placeOf(a) < placeOf(b); }
  struct Place {
    size_t node = 0, depth = 0, offset = 0;
    bool operator<(const Place& other) const {
      return node != other.node     ? node < other.node
             : depth != other.depth ? depth < other.depth
                                    : offset < other.offset;
    }
  };
  Place placeOf(const Value* value) const;

 private:
  struct OpenedBlock {
    size_t begin, depth;
  };
  std::vector<size_t> name_index_;
  std::unordered_map<const Node*, OpenedBlock> blocks_;  // by the node of their inputs
  WorkingCopy(const Graph& original, std::shared_ptr<Graph> normalised);
  static Result<std::shared_ptr<const WorkingCopy>> finish(std::shared_ptr<WorkingCopy> copy,
                                                           const std::vector<std::string>& opened);
  void addNodes(torch::jit::Block* block, size_t depth, const std::unordered_set<const Node*>& to_open,
                size_t& at);
};

}  // namespace faultline
