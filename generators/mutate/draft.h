// A case under edit. Internal to generators/mutate.
#pragma once
#include <vector>

#include "generators/case/case.h"
#include "generators/choices/choices.h"

namespace faultline {

struct Draft {
  Case& c;
  Choices& choices;
  torch::jit::Graph& graph() const { return *c.graph; }
};

// Edits: false where the case has no place for them; the draft is then thrown away.
#define FAULTLINE_MUTATION(name, weight, growth, function, help) bool function(Draft& draft);
#include "generators/mutate/mutations.def"
#undef FAULTLINE_MUTATION

// Nodes of all blocks, subgraphs left out, in graph order.
std::vector<torch::jit::Node*> allNodes(torch::jit::Graph& graph);
bool holdsSubgraph(torch::jit::Graph& graph);
size_t depthOf(const torch::jit::Node* node);  // blocks around it
// Neighbours of one block without constants and changes of the grad mode, one to five.
std::vector<torch::jit::Node*> pickStretch(Draft& draft);
bool changesGradMode(const torch::jit::Node* node);

struct OuterUse {
  torch::jit::Value* value;
  std::vector<torch::jit::Use> uses;  // by nodes that are not inside
};
// Values that the stretch makes and that nodes outside of it use.
std::vector<OuterUse> usedBehind(const std::vector<torch::jit::Node*>& stretch);
void redirect(const std::vector<torch::jit::Use>& uses, torch::jit::Value* to);

// The ops that a plan names are followed through an edit: marked by an attribute before it, their names as
// they are then written behind it. What is gone is dropped.
void markPlannedNodes(Case& c);
void renamePlannedNodes(Case& c);

// Hooks sit on tensors that require grad on every run, on leaves or results as their kind demands.
bool mayBeHooked(const Case& c, const HookSpec& hook);

// Makes the case whole again after an edit: types that are no longer sure, constants nobody uses, hooks, cuts
// and backward phases of what is not there.
void repairCase(Case& c);

}  // namespace faultline
