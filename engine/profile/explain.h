// Where an answer comes from: the profile nodes behind it, and in what place they stand to the use.
#pragma once
#include <string>
#include <vector>

#include "engine/profile/analysis.h"

namespace faultline::profile {

struct Provenance {
  std::vector<const Node*> evidence;  // nearest first; each once
  const char* place = nullptr;        // nullptr: nothing is known
};

Provenance explain(const Analysis& analysis, const Value* value, int32_t step, const Answer& answer);

// A profile node whose type says exactly the answer: the one that feeds the use, else one of the evidence.
const Node* nodeSaying(const Analysis& analysis, const Value* value, const Answer& answer,
                       const Provenance& from);

// Does the node that feeds an input of the node at `step` stand in the use's own block and say exactly the
// answer?
bool feedSays(const Analysis& analysis, int32_t step, size_t offset, const Answer& answer);

// Why a cell holds no value, as a clause; never empty.
inline ProfileReason whyUnknown(const Cell& cell, const Reasons& reasons) {
  if (cell.reason != kNoReason) return reasons[cell.reason];
  return {cell.state == CellState::Varies ? ReasonKind::Varies : ReasonKind::NoEvidence, nullptr};
}

}  // namespace faultline::profile
