#include "engine/profile/fact_pool.h"

#include "engine/profile/evidence.h"

namespace faultline::profile {
namespace {

void mix(size_t& hash, uint64_t value) { hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2); }

size_t hashOf(const Fact& fact) {
  size_t hash = fact.sizes.size();
  forEachCell(const_cast<Fact&>(fact), kAllFields, [&](const Cell& cell) {
    mix(hash, static_cast<uint64_t>(cell.state) | (static_cast<uint64_t>(cell.covers) << 8) |
                  (static_cast<uint64_t>(static_cast<uint32_t>(cell.reason)) << 16));
    mix(hash, static_cast<uint64_t>(cell.value));
  });
  return hash;
}

size_t hashOfValues(const Fact& fact) {
  size_t hash = fact.sizes.size();
  forEachCell(const_cast<Fact&>(fact), kAllFields, [&](const Cell& cell) {
    mix(hash, cell.known() ? static_cast<uint64_t>(cell.value) * 2 + 1 : 0);
  });
  return hash;
}

uint64_t key(FactId a, FactId b) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32) | static_cast<uint32_t>(b);
}

}  // namespace

FactId FactPool::intern(const Fact& fact) {
  const size_t hash = hashOf(fact);
  FactId& last = by_hash_.emplace(hash, kNoFact).first->second;
  for (FactId known = last; known != kNoFact; known = before_[static_cast<size_t>(known)]) {
    if (facts_[static_cast<size_t>(known)] == fact) return known;
  }
  const FactId id = static_cast<FactId>(facts_.size());
  before_.push_back(last);
  last = id;
  facts_.push_back(fact);
  Summary summary{false, true, 0, false, firstWithValuesOf(id)};
  for (uint8_t group : {kIdentity, kShape, kGradient}) {
    bool all = true;
    forEachCell(facts_.back(), group, [&](const Cell& cell) {
      summary.speaks = summary.speaks || cell.speaks();
      summary.silent = summary.silent && cell.state == CellState::Nothing;
      summary.conditional = summary.conditional || (cell.speaks() && !cell.covers);
      all = all && cell.known() && cell.covers;
    });
    if (all) summary.complete = static_cast<uint8_t>(summary.complete | group);
  }
  summary_.push_back(summary);
  return id;
}

FactId FactPool::firstWithValuesOf(FactId id) {
  const Fact& fact = facts_[static_cast<size_t>(id)];
  FactId& last = by_values_.emplace(hashOfValues(fact), kNoFact).first->second;
  before_values_.push_back(kNoFact);
  for (FactId known = last; known != kNoFact; known = before_values_[static_cast<size_t>(known)]) {
    if (profile::sameValues(facts_[static_cast<size_t>(known)], fact)) return known;
  }
  before_values_.back() = last;
  last = id;
  return id;
}

FactId FactPool::uniform(CellState state, ReasonId reason) {
  if (reason != kNoReason) return intern(uniformFact(state, reason));
  FactId& known = uniform_[static_cast<size_t>(state)];
  if (known == kNoFact) known = intern(uniformFact(state));
  return known;
}

FactId FactPool::pairwise(FactId a, FactId b, int op) {
  if (a == b) return a;
  auto it = pairs_[op].find(key(a, b));
  if (it != pairs_[op].end()) return it->second;
  const Fact& x = (*this)[a];
  const Fact& y = (*this)[b];
  auto result = [&] {
    switch (op) {
      case 0:
        return profile::join(x, y);
      case 1:
        return profile::refine(x, y);
      case 2:
        return profile::combine(x, y);
      default:
        return profile::overlay(x, y, static_cast<uint8_t>(op - 3));
    }
  };
  const FactId id = intern(result());
  pairs_[op].emplace(key(a, b), id);
  return id;
}

FactId FactPool::restrict(FactId id, uint8_t fields) {
  if (fields == kAllFields) return id;
  auto it = restricted_.find(key(id, fields));
  if (it != restricted_.end()) return it->second;
  Fact copy = (*this)[id];
  keepOnly(copy, fields);
  const FactId result = intern(copy);
  restricted_.emplace(key(id, fields), result);
  return result;
}

}  // namespace faultline::profile
