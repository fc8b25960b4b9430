#include "engine/ir/walk.h"
#include "engine/support/check.h"
#include "faultline/ir.h"

namespace faultline {

NodeNames::NodeNames(const Graph& graph) {
  size_t count = 0;
  forEachNode(graph.block(), [&](const Node*) { ++count; });
  names_.reserve(count);
  nodes_.reserve(count);
  by_name_.reserve(count);
  index_of_.reserve(count);
  std::unordered_map<std::string, size_t> next_suffix;
  forEachNode(graph.block(), [&](const Node* node) {
    const std::string base = node->kind().toUnqualString();
    size_t& suffix = next_suffix[base];
    std::string name = suffix == 0 ? base : base + "_" + std::to_string(suffix);
    // An op may be called what a numbered one already is ("view", "view_1"): count on, as torch.fx does.
    while (by_name_.count(name) != 0) {
      ++suffix;
      name = base + "_" + std::to_string(suffix);
    }
    ++suffix;
    const size_t index = names_.size();
    by_name_.emplace(name, index);
    index_of_.emplace(node, index);
    names_.push_back(std::move(name));
    // The graph is only read here; find() hands out what its caller owns.
    nodes_.push_back(const_cast<Node*>(node));
  });
}

const std::string& NodeNames::of(const Node* node) const {
  const auto found = index_of_.find(node);
  FAULTLINE_CHECK(found != index_of_.end(), std::string("NodeNames::of: not a node of this graph"));
  return names_[found->second];
}

Node* NodeNames::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : nodes_[found->second];
}

}  // namespace faultline
