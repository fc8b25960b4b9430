// The profile protocol with one rule of its meaning left out: answers of a graph in which what the rule is
// about cannot be seen, for the uses of the graph that is asked about.
#pragma once
#include <algorithm>
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

template <class Change>
auto blindTo(Change change) {
  return [=](const Graph& graph, const std::vector<Use>& uses) {
    auto copy = const_cast<Graph&>(graph).copy();
    change(*copy);
    const std::vector<ProfileLookup> blind = engineProfilePasses().lookup(*copy, usesOf(*copy));
    return blind.size() == uses.size() ? blind : engineProfilePasses().lookup(graph, uses);
  };
}

// mul_ becomes mul, where there is such an op: what was known before a write holds behind it.
inline void hideWrites(Graph& graph) {
  std::vector<Node*> writes;
  writesOf(graph.block(), writes);
  for (Node* node : writes) {
    const std::string name = node->kind().toQualString();
    Node* other = node->owningGraph()->create(c10::Symbol::fromQualString(name.substr(0, name.size() - 1)),
                                              node->inputs(), 1);
    other->insertBefore(node);
    other->output()->setType(node->output()->type());
    if (other->maybeSchema() == nullptr) {
      other->destroy();
      continue;
    }
    node->output()->replaceAllUsesWith(other->output());
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

inline void takeClonesForEvidence(Graph& graph) {
  std::vector<Node*> nodes;
  profileNodesOf(graph.block(), nodes);
  for (Node* node : nodes) {
    for (const char* mark : {"faultline_clone", "faultline_conditional"}) {
      if (node->hasAttribute(c10::Symbol::attr(mark))) node->removeAttribute(c10::Symbol::attr(mark));
    }
  }
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
