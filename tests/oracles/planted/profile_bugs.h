// The profile protocol with one rule of its meaning left out: answers of a graph in which what the rule is
// about cannot be seen, for the uses of the graph that is asked about.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/GradMode.h>

#include "faultline/recorder.h"
#include "oracles/exec/profile_passes.h"

namespace faultline::planted::profile_bugs {

namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;
using torch::jit::Block;

inline void profileNodesOf(Block* block, std::vector<Node*>& into) {
  for (Node* node : block->nodes()) {
    if (node->kind() == prim::profile && node->outputs().size() == 1) into.push_back(node);
    for (Block* inner : node->blocks()) profileNodesOf(inner, into);
    if (node->hasAttribute(attr::Subgraph)) profileNodesOf(node->g(attr::Subgraph)->block(), into);
  }
}

inline void writesOf(Block* block, std::vector<Node*>& into) {
  for (Node* node : block->nodes()) {
    const std::string name = node->kind().toUnqualString();
    if (node->kind().is_aten() && name.size() > 2 && name.back() == '_' && name[name.size() - 2] != '_')
      into.push_back(node);
    for (Block* inner : node->blocks()) writesOf(inner, into);
    if (node->hasAttribute(attr::Subgraph)) writesOf(node->g(attr::Subgraph)->block(), into);
  }
}

// In the same order in every copy of a graph, whatever became of its nodes, as long as there are as many.
inline std::vector<Use> usesOf(const Graph& graph) {
  std::vector<Use> uses = profileSites(graph);
  uses.erase(std::remove_if(uses.begin(), uses.end(),
                            [](const Use& use) {
                              return use.user->kind() == prim::profile ||
                                     use.user->kind() == prim::profile_ivalue;
                            }),
             uses.end());
  return uses;
}

inline const torch::jit::Value* made(const torch::jit::Value* value) {
  while (value->node()->kind() == prim::profile) value = value->node()->input();
  return value;
}

// Answers before and after propagation are those of one graph: only what arrives shows that they are wrong.
template <class Change>
auto blindTo(Change change) {
  return [=](const Graph& graph, const std::vector<Use>& uses) {
    auto copy = const_cast<Graph&>(graph).copy();
    removeProfileClones(*copy);
    change(*copy);
    const std::vector<ProfileLookup> blind = engineProfilePasses().lookup(*copy, usesOf(*copy));
    return blind.size() == uses.size() ? blind : engineProfilePasses().lookup(graph, uses);
  };
}

// A node in front of `node` that does `kind` with the same operands; nullptr where there is no such op.
inline Node* makeInstead(Node* node, const std::string& kind) {
  Node* other = node->owningGraph()->create(c10::Symbol::fromQualString(kind), node->inputs(), 1);
  other->insertBefore(node);
  other->output()->setType(node->output()->type());
  if (other->maybeSchema() != nullptr) return other;
  other->destroy();
  return nullptr;
}

// mul_ becomes a mul that nobody asks, where there is such an op: what was known before a write holds behind
// it.
inline void hideWrite(Node* node) {
  const std::string name = node->kind().toQualString();
  if (makeInstead(node, name.substr(0, name.size() - 1)) == nullptr) return;
  node->output()->replaceAllUsesWith(node->input(0));
  node->destroy();
}

inline void hideWrites(Graph& graph) {
  std::vector<Node*> writes;
  writesOf(graph.block(), writes);
  for (Node* node : writes) hideWrite(node);
}

inline const Block* loopAround(const Node* node) {
  const Block* block = node->owningBlock();
  while (block->owningNode() != nullptr && block->owningNode()->kind() != prim::Loop)
    block = block->owningNode()->owningBlock();
  return block->owningNode() == nullptr ? nullptr : block;
}

// What a trip writes does not reach the next one: of the writes of a loop only those count that stand before
// a use.
inline std::vector<ProfileLookup> noBackEdges(const Graph& graph, const std::vector<Use>& uses) {
  std::vector<ProfileLookup> lookups = engineProfilePasses().lookup(graph, uses);
  std::vector<Node*> writes;
  writesOf(const_cast<Graph&>(graph).block(), writes);
  std::map<const Block*, std::vector<size_t>> written;  // outermost loops only
  for (size_t i = 0; i < writes.size(); ++i) {
    const Block* loop = loopAround(writes[i]);
    if (loop != nullptr && loopAround(loop->owningNode()) == nullptr) written[loop].push_back(i);
  }
  for (const auto& entry : written) {
    const std::vector<size_t>& there = entry.second;
    std::map<size_t, std::vector<size_t>> later;  // first of the writes that a use does not come after
    for (size_t i = 0; i < uses.size(); ++i) {
      const Node* user = uses[i].user;
      if (loopAround(user) != entry.first) continue;
      const auto first = std::find_if(there.begin(), there.end(), [&](size_t write) {
        return writes[write] == user || user->isBefore(writes[write]);
      });
      if (first != there.end()) later[static_cast<size_t>(first - there.begin())].push_back(i);
    }
    for (const auto& [first, of] : later) {
      const auto hidden = there.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<ProfileLookup> blind = blindTo([&, hidden](Graph& copy) {
        std::vector<Node*> all;
        writesOf(copy.block(), all);
        std::for_each(hidden, there.end(), [&](size_t write) { hideWrite(all[write]); });
      })(graph, uses);
      for (size_t i : of) lookups[i] = blind[i];
    }
  }
  return lookups;
}

// A view becomes a copy: what is written into one of a group of views is not seen by the others.
inline void separateViews(Block* block) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it;
    ++it;
    for (Block* inner : node->blocks()) separateViews(inner);
    if (node->hasAttribute(attr::Subgraph)) separateViews(node->g(attr::Subgraph)->block());
    if (!node->kind().is_aten() || node->outputs().size() != 1) continue;
    Node* copy = makeInstead(node, node->kind().toQualString() + std::string("_copy"));
    if (copy == nullptr) continue;
    node->output()->replaceAllUsesWith(copy->output());
    node->destroy();
  }
}

// What libtorch's own node would have recorded under no_grad, taken for the tensor's own flag.
inline void believeNoGrad(Graph& graph) {
  std::vector<Node*> nodes;
  profileNodesOf(graph.block(), nodes);
  for (Node* node : nodes) {
    if (!node->hasAttribute(c10::Symbol::attr("faultline_raw"))) continue;
    const auto type = node->ty(attr::profiled_type)->cast<c10::TensorType>();
    if (type != nullptr) node->ty_(attr::profiled_type, type->withRequiresGrad(false));
  }
}

inline std::vector<ProfileLookup> clonesTakenForEvidence(const Graph& graph, const std::vector<Use>&) {
  auto copy = const_cast<Graph&>(graph).copy();
  std::vector<Node*> nodes;
  profileNodesOf(copy->block(), nodes);
  for (Node* node : nodes) {
    for (const char* mark : {"faultline_clone", "faultline_conditional"}) {
      if (node->hasAttribute(c10::Symbol::attr(mark))) node->removeAttribute(c10::Symbol::attr(mark));
    }
  }
  return engineProfilePasses().lookup(*copy, usesOf(*copy));
}

// What a loop carries is what it began with.
inline std::vector<ProfileLookup> loopsKeepTheirBeginning(const Graph& graph, const std::vector<Use>& uses) {
  std::vector<ProfileLookup> lookups = engineProfilePasses().lookup(graph, uses);
  const ProfileIndex index(graph);
  for (size_t i = 0; i < uses.size(); ++i) {
    const torch::jit::Value* value = made(uses[i].user->input(uses[i].offset));
    Node* node = const_cast<Node*>(value->node());
    const bool carried = node->kind() == prim::Param && value->offset() > 0 &&
                         node->owningBlock()->owningNode() != nullptr &&
                         node->owningBlock()->owningNode()->kind() == prim::Loop;
    if (carried) lookups[i] = index.lookup(Use(node->owningBlock()->owningNode(), value->offset() + 1));
    if (node->kind() == prim::Loop) lookups[i] = index.lookup(Use(node, value->offset() + 2));
  }
  return lookups;
}

}  // namespace faultline::planted::profile_bugs
