// Ifs and Loops whose bodies are cut ("opened"): which ones a policy asks for, and where pieces end because
// of it.
#pragma once
#include <string>
#include <vector>

#include "engine/graph_break/policy.h"

namespace faultline {

// Names of the Ifs and Loops that have to be opened for the cuts that `policy` asks for inside them, outer
// ones first. `work` opens none. Refuses a policy that cannot be had inside blocks.
Result<std::vector<std::string>> blocksToOpen(const WorkingCopy& work, const BreakPolicy& policy);

// The places where a piece ends since a block begins or ends there, or an opened If or Loop stands there.
std::vector<Wish> forcedCuts(const GraphFacts& facts);

// The begin of the piece that ends at `end`, where the piece before it ended at `before`.
size_t pieceBegin(const WorkingCopy& work, size_t before, size_t end);

// Whether `plan` was made for this graph, with what it opens.
bool fits(const BreakPlan& plan, const WorkingCopy& work);

}  // namespace faultline
