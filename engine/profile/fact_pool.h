// Facts by number: equal facts have one number, and what two numbers make together is remembered. A graph has
// many uses and few different facts.
#pragma once
#include <deque>
#include <unordered_map>

#include "engine/profile/fact.h"

namespace faultline::profile {

using FactId = int32_t;
constexpr FactId kNoFact = -1;

class FactPool {
 public:
  FactId intern(const Fact& fact);
  const Fact& operator[](FactId id) const { return facts_[static_cast<size_t>(id)]; }

  FactId uniform(CellState state, ReasonId reason = kNoReason) { return intern(uniformFact(state, reason)); }
  FactId join(FactId a, FactId b) { return pairwise(a, b, 0); }
  FactId refine(FactId far, FactId near) { return pairwise(far, near, 1); }
  FactId combine(FactId a, FactId b) { return pairwise(a, b, 2); }
  // The fields of the mask as in `from`, the others as in `into`.
  FactId overlay(FactId into, FactId from, uint8_t fields) { return pairwise(into, from, 3 + fields); }
  // Only the fields of the mask; the others are Nothing.
  FactId restrict(FactId id, uint8_t fields);
  bool speaks(FactId id) const { return summary_[static_cast<size_t>(id)].speaks; }
  // Every field of a defined tensor is a value.
  bool complete(FactId id, uint8_t fields) const {
    return (summary_[static_cast<size_t>(id)].complete & fields) == fields;
  }
  // Nothing at all is said, for whatever reason.
  bool silent(FactId id) const { return summary_[static_cast<size_t>(id)].silent; }

 private:
  struct Summary {
    bool speaks;
    bool silent;
    uint8_t complete;  // groups of fields that are all values and cover
  };
  FactId pairwise(FactId a, FactId b, int op);

  std::deque<Fact> facts_;
  std::deque<Summary> summary_;
  std::unordered_multimap<size_t, FactId> by_hash_;
  std::unordered_map<uint64_t, FactId> pairs_[3 + kAllFields + 1];
  std::unordered_map<uint64_t, FactId> restricted_;
};

}  // namespace faultline::profile
