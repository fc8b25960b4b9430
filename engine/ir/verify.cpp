#include <fmt/format.h>

#include "engine/ir/describe.h"
#include "engine/ir/places.h"
#include "engine/ir/verify_rules.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;
using torch::jit::Block;

// Thrown and caught in this file only.
struct Problem {
  std::string message;
  const Node* node;
};

class Verifier {
 public:
  void graph(const Graph& graph, const std::string& place) {
    place_ = place;
    block(*graph.block());
    for (const auto& [inner, inner_place] : std::exchange(inner_, {})) {
      Verifier().graph(*inner, inner_place);
    }
  }

 private:
  [[noreturn]] void fail(const Node& node, const std::string& what) {
    throw Problem{fmt::format("{}: {}{}", shortened(describeNode(node)), what, place_), &node};
  }

  void block(const Block& block) {
    std::vector<const Value*> made;
    define(block.inputs(), made);
    for (const Node* node : block.nodes()) {
      this->node(*node);
      define(node->outputs(), made);
    }
    inputs(*block.return_node());
    for (const Value* value : made) {
      in_scope_.erase(value);
    }
  }

  void define(at::ArrayRef<const Value*> values, std::vector<const Value*>& made) {
    for (const Value* value : values) {
      in_scope_.insert(value);
      made.push_back(value);
    }
  }

  void inputs(const Node& node) {
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Value* value = node.inputs()[i];
      if (in_scope_.count(value) == 0) {
        fail(node, fmt::format("input {} (%{}) {}", i, value->debugName(), whyNotInScope(*value, node)));
      }
    }
  }

  std::string whyNotInScope(const Value& value, const Node& user) const {
    const Node* maker = value.node();
    if (maker == &user || maker->isAfter(&user)) {
      return "is used before it is made";
    }
    const Block* home = maker->owningBlock();
    const Node* owner = home == nullptr ? nullptr : home->owningNode();
    return owner == nullptr
               ? "is not in scope"
               : fmt::format("is not in scope: it is made in a block of {}", shortened(describeNode(*owner)));
  }

  void node(const Node& node) {
    inputs(node);
    const std::string problem = problemOf(node);
    if (!problem.empty()) {
      fail(node, problem);
    }
    for (const Block* inner : node.blocks()) {
      block(*inner);
    }
    rememberGraphs(node);
  }

  static std::string problemOf(const Node& node) {
    const bool subgraph = isSubgraphKind(node.kind()) || node.hasAttribute(c10::attr::Subgraph);
    if (subgraph) {
      return subgraphProblem(node);
    }
    return hasStructureRule(node.kind()) ? structureProblem(node) : schemaProblem(node);
  }

  // Verified after this graph, in one go: what is wrong here is said first.
  void rememberGraphs(const Node& node) {
    for (const c10::Symbol name : node.attributeNames()) {
      if (node.kindOf(name) == AttributeKind::g && node.g(name) != nullptr) {
        inner_.emplace_back(node.g(name).get(), fmt::format(" (in {} of {}{})", name.toUnqualString(),
                                                            shortened(describeNode(node)), place_));
      }
    }
  }

  std::string place_;
  std::unordered_set<const Value*> in_scope_;
  std::vector<std::pair<const Graph*, std::string>> inner_;
};

}  // namespace

Result<void> verifyGraph(const Graph& graph) { return verifyGraphWithPlaces(graph, {}); }

Result<void> verifyGraphWithPlaces(const Graph& graph, const NodePlaces& places) {
  try {
    Verifier().graph(graph, "");
    return {};
  } catch (const Problem& problem) {
    const auto place = places.find(problem.node);
    return fail(ErrorKind::Invalid, problem.message,
                place == places.end() ? std::nullopt : std::optional(place->second));
  } catch (const c10::Error& error) {
    return fail(ErrorKind::Invalid,
                "torch refuses this graph: " + std::string(error.what_without_backtrace()));
  }
}

}  // namespace faultline
