// Facts by number: equal facts have one number, and what two numbers make together is remembered. A graph has
// many uses and few different facts.
#pragma once
#include <array>
#include <deque>

#include <c10/util/flat_hash_map.h>

#include "engine/profile/fact.h"

namespace faultline::profile {

using FactId = int32_t;
constexpr FactId kNoFact = -1;

class FactPool {
 public:
  FactId intern(const Fact& fact);
  const Fact& operator[](FactId id) const { return facts_[static_cast<size_t>(id)]; }

  FactId uniform(CellState state, ReasonId reason = kNoReason);
  FactId join(FactId a, FactId b) { return pairwise(a, b, 0); }
  FactId refine(FactId far, FactId near) { return pairwise(far, near, 1); }
  FactId combine(FactId a, FactId b) { return pairwise(a, b, 2); }
  // The fields of the mask as in `from`, the others as in `into`.
  FactId overlay(FactId into, FactId from, uint8_t fields) { return pairwise(into, from, 3 + fields); }
  // Only the fields of the mask; the others are Nothing.
  FactId restrict(FactId id, uint8_t fields);
  size_t size() const { return facts_.size(); }
  // Some field rests on evidence that does not cover the place.
  bool conditional(FactId id) const { return summary_[static_cast<size_t>(id)].conditional; }
  bool speaks(FactId id) const { return summary_[static_cast<size_t>(id)].speaks; }
  // Do both know the same fields with the same values? Says nothing of why others are not known.
  bool sameValues(FactId a, FactId b) const { return values(a) == values(b); }
  // One fact for all that know the same.
  FactId values(FactId id) const { return summary_[static_cast<size_t>(id)].values; }
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
    bool conditional;
    FactId values;  // the first fact that knows the same
  };
  FactId pairwise(FactId a, FactId b, int op);
  FactId firstWithValuesOf(FactId id);

  std::deque<Fact> facts_;
  std::deque<Summary> summary_;
  // By hash, the last of the facts that have it; each fact names the one before.
  ska::flat_hash_map<size_t, FactId> by_hash_, by_values_;
  std::vector<FactId> before_, before_values_;
  ska::flat_hash_map<uint64_t, FactId> pairs_[3 + kAllFields + 1];
  ska::flat_hash_map<uint64_t, FactId> restricted_;
  std::array<FactId, 5> uniform_ = {kNoFact, kNoFact, kNoFact, kNoFact, kNoFact};  // without a reason
};

}  // namespace faultline::profile
