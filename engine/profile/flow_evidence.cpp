// Evidence in its states: placed, derived at merges and backwards, and linked by dominance.
#include <algorithm>
#include <queue>

#include "engine/profile/flow.h"

namespace faultline::profile {
namespace {

Cell firstThatSpeaks(const Cell& a, const Cell& b) {
  if (a.speaks()) return a;
  if (b.speaks()) return b;
  if (a.state == CellState::Neutral || b.state == CellState::Neutral)
    return a.state == CellState::Neutral ? a : b;
  // Of two that say nothing, the later has the better reason: it is about this place.
  return a.state < b.state ? a : b;
}

// Field by field what `a` says, else what `b` says; dimensions follow the rank that was taken.
Fact prefer(const Fact& a, const Fact& b) {
  Fact result;
  result.defined = firstThatSpeaks(a.defined, b.defined);
  result.dtype = firstThatSpeaks(a.dtype, b.dtype);
  result.device = firstThatSpeaks(a.device, b.device);
  result.requires_grad = firstThatSpeaks(a.requires_grad, b.requires_grad);
  result.rank = firstThatSpeaks(a.rank, b.rank);
  if (!result.rank.known()) return result;
  const bool both = a.rank.known() && b.rank.known() && a.rank.value == b.rank.value;
  const Fact& taken = a.rank.known() ? a : b;
  result.sizes = taken.sizes;
  result.strides = taken.strides;
  if (!both) return result;
  for (size_t i = 0; i < result.sizes.size(); ++i) result.sizes[i] = firstThatSpeaks(a.sizes[i], b.sizes[i]);
  for (size_t i = 0; i < result.strides.size(); ++i)
    result.strides[i] = firstThatSpeaks(a.strides[i], b.strides[i]);
  return result;
}

Fact where(const Fact& fact, bool covers) {
  Fact copy = fact;
  forEachCell(copy, kAllFields, [&](Cell& cell) {
    if (cell.speaks() && cell.covers != covers) cell = {CellState::Nothing, true, cell.reason, 0};
  });
  return copy;
}

}  // namespace

void Flow::placeEvidence(const std::vector<Observation>& observations) {
  for (const Observation& seen : observations) {
    const int32_t state = stateAt(seen.root, seen.at);
    Evidence evidence;
    evidence.at = seen.at;
    evidence.control = seen.control;
    evidence.fact = c_.pool.restrict(seen.fact, fields_);
    evidence.node = seen.node;
    states_[static_cast<size_t>(state)].evidence.push_back(static_cast<int32_t>(evidence_.size()));
    evidence_.push_back(evidence);
  }
  while (!unfilled_.empty()) {
    const auto [state, version] = unfilled_.back();
    unfilled_.pop_back();
    fillParts(state, version);
  }
}

// Where every arm that ran says something of a tensor from before the If, the If as a whole says it.
void Flow::deriveAtMerges() {
  struct Arm {
    int32_t control;
    FactId fact;
    Pos at;
  };
  struct Merge {
    Pos close;
    int32_t open;
    int32_t state;
    bool operator>(const Merge& other) const {
      return std::tie(close, open, state) > std::tie(other.close, other.open, other.state);
    }
  };
  std::unordered_map<uint64_t, std::vector<Arm>> arms;  // (open, state)
  std::priority_queue<Merge, std::vector<Merge>, std::greater<>> merges;
  auto note = [&](int32_t state, int32_t control, FactId fact, Pos at) {
    const Control& c = c_.program.control(control);
    if (c.kind != ControlKind::Arm) return;
    const uint64_t key =
        (static_cast<uint64_t>(static_cast<uint32_t>(c.open)) << 32) | static_cast<uint32_t>(state);
    std::vector<Arm>& at_merge = arms[key];
    if (at_merge.empty()) merges.push({FlowProgram::after(c_.program.step(c.open).match), c.open, state});
    for (Arm& arm : at_merge) {
      if (arm.control == control) {
        arm.fact = c_.pool.refine(arm.fact, fact);
        arm.at = at;
        return;
      }
    }
    at_merge.push_back({control, fact, at});
  };
  for (const State& state : states_) {
    const int32_t index = static_cast<int32_t>(&state - states_.data());
    for (int32_t e : state.evidence) {
      const Evidence& evidence = evidence_[static_cast<size_t>(e)];
      note(index, evidence.control, evidence.fact, evidence.at);
    }
  }
  while (!merges.empty()) {
    const Merge merge = merges.top();
    merges.pop();
    const uint64_t key =
        (static_cast<uint64_t>(static_cast<uint32_t>(merge.open)) << 32) | static_cast<uint32_t>(merge.state);
    const std::vector<Arm> known = arms[key];
    const State& state = states_[static_cast<size_t>(merge.state)];
    // Only for a tensor that was there before, in the same epoch after.
    const Root& root = c_.objects.roots()[static_cast<size_t>(state.root)];
    if (root.birth > FlowProgram::before(merge.open)) continue;
    if (findState(state.root, merge.close) != merge.state) continue;
    FactId fact = c_.pool.uniform(CellState::Neutral);
    bool all = true;
    for (int32_t block : c_.program.blocksOf(merge.open)) {
      if (c_.dead[static_cast<size_t>(block)]) continue;
      auto it =
          std::find_if(known.begin(), known.end(), [&](const Arm& arm) { return arm.control == block; });
      all = all && it != known.end();
      if (all) fact = c_.pool.join(fact, it->fact);
    }
    if (!all || !c_.pool.speaks(fact)) continue;
    Evidence derived;
    derived.at = merge.close;
    derived.control = c_.program.step(merge.open).control;
    derived.fact = fact;
    derived.source_state = merge.state;
    derived.source_at = merge.close;
    states_[static_cast<size_t>(merge.state)].evidence.push_back(static_cast<int32_t>(evidence_.size()));
    evidence_.push_back(derived);
    note(merge.state, derived.control, fact, derived.at);
  }
}

// From the last place to the first: what is known behind a write, a merge or a join speaks of what went into
// it.
void Flow::linkBackwards() {
  struct Item {
    Pos at;
    bool evidence;  // else: a state whose beginning is reached
    int32_t index;
    int32_t state;
    bool operator<(const Item& other) const {
      // Of two at one place the state's beginning comes last: evidence there belongs to it.
      return std::tie(at, evidence, index) < std::tie(other.at, other.evidence, other.index);
    }
  };
  std::priority_queue<Item> queue;
  std::vector<int32_t> first(states_.size(), -1);
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    const int32_t index = static_cast<int32_t>(i);
    for (int32_t e : state.evidence) queue.push({evidence_[static_cast<size_t>(e)].at, true, e, index});
    state.evidence.clear();
    // A loop's next trip is not the rest of this one: nothing flows back out of loops.
    if (!state.parts.empty() && !state.loop) queue.push({state.created, false, index, index});
  }
  while (!queue.empty()) {
    const Item item = queue.top();
    queue.pop();
    State& state = states_[static_cast<size_t>(item.state)];
    if (item.evidence) {
      Evidence& evidence = evidence_[static_cast<size_t>(item.index)];
      int32_t next = first[static_cast<size_t>(item.state)];
      while (next >= 0 && !c_.program.contains(evidence_[static_cast<size_t>(next)].control, evidence.at)) {
        next = evidence_[static_cast<size_t>(next)].after;
      }
      evidence.after = next;
      if (next >= 0) {
        const Evidence& later = evidence_[static_cast<size_t>(next)];
        evidence.leaves = later.leaves || later.control != evidence.control;
      }
      evidence.onwards = next < 0
                             ? evidence.fact
                             : c_.pool.refine(evidence_[static_cast<size_t>(next)].onwards, evidence.fact);
      first[static_cast<size_t>(item.state)] = item.index;
      state.evidence.push_back(item.index);
      continue;
    }
    int32_t next = first[static_cast<size_t>(item.state)];
    while (next >= 0 && !c_.program.contains(evidence_[static_cast<size_t>(next)].control, state.created)) {
      next = evidence_[static_cast<size_t>(next)].after;
    }
    if (next < 0) continue;
    const FactId onwards = evidence_[static_cast<size_t>(next)].onwards;
    const FactId back = state.joins ? onwards : backThroughWrite(state, onwards);
    if (c_.pool.silent(back)) continue;
    const std::vector<StatePart> parts = state.parts;
    for (const StatePart& part : parts) {
      if (part.state < 0 || (part.arm >= 0 && c_.dead[static_cast<size_t>(part.arm)])) continue;
      Evidence derived;
      derived.at = part.at;
      derived.control = part.arm >= 0 ? part.arm : c_.program.step(FlowProgram::stepAt(part.at)).control;
      derived.fact = back;
      derived.source_state = item.state;
      derived.source_at = state.created;
      // Seen behind an If, whichever arm ran: in this arm it holds, but it is no sign that this arm ever ran.
      const Evidence& seen = evidence_[static_cast<size_t>(next)];
      derived.local = seen.local && !seen.leaves && seen.control == derived.control;
      queue.push({part.at, true, static_cast<int32_t>(evidence_.size()), part.state});
      evidence_.push_back(derived);
    }
  }
}

void Flow::linkForwards() {
  for (State& state : states_) {
    if (state.evidence.empty()) continue;
    std::reverse(state.evidence.begin(), state.evidence.end());
    int32_t last = -1;
    for (int32_t e : state.evidence) {
      Evidence& evidence = evidence_[static_cast<size_t>(e)];
      int32_t before = last;
      while (before >= 0 &&
             !c_.program.contains(evidence_[static_cast<size_t>(before)].control, evidence.at)) {
        before = evidence_[static_cast<size_t>(before)].before;
      }
      evidence.before = before;
      evidence.upto = before < 0 ? evidence.fact
                                 : c_.pool.refine(evidence_[static_cast<size_t>(before)].upto, evidence.fact);
      // Elsewhere than where it is certain to pass, only what was seen in its own block counts.
      FactId anywhere = evidence.fact;
      if (!evidence.local) {
        Fact reasons = c_.pool[anywhere];
        forEachCell(reasons, kAllFields, [](Cell& cell) {
          if (cell.state != CellState::Ended) cell = Cell{};
        });
        anywhere = c_.pool.intern(reasons);
      }
      state.total = state.total == kNoFact ? anywhere : c_.pool.combine(state.total, anywhere);
      last = e;
    }
  }
}

size_t Flow::PickedHash::operator()(const Picked& key) const {
  uint64_t hash = 0;
  for (FactId id : key.from) hash = (hash ^ static_cast<uint32_t>(id)) * 0x9e3779b97f4a7c15ull + (hash >> 29);
  return hash;
}

// Evidence that covers the place first: what dominates it, then what post-dominates it. Then, for whoever
// guards, everything else that was seen of the same tensor in the same epoch.
FactId Flow::pick(FactId in, FactId dominating, FactId after, FactId total) const {
  const Picked key{{in, dominating, after, total}};
  if (auto it = picked_.find(key); it != picked_.end()) return it->second;
  const Fact& start = c_.pool[in];
  Fact fact = where(start, true);
  if (dominating != kNoFact) fact = refine(fact, c_.pool[dominating]);
  if (after != kNoFact) fact = prefer(fact, c_.pool[after]);
  Fact rest = where(start, false);
  if (total != kNoFact) rest = combine(c_.pool[total], rest);
  forEachCell(rest, kAllFields, [&](Cell& cell) {
    if (cell.speaks()) cell.covers = false;
    // Code that never ran is no news of code that did, unless it stands where the place is certain to pass.
    if (cell.state == CellState::Neutral) {
      cell = {CellState::Nothing, true, c_.reasons.of(ReasonKind::NeverRan), 0};
    }
  });
  fact = prefer(fact, rest);
  keepOnly(fact, fields_);
  const FactId result = c_.pool.intern(fact);
  picked_.emplace(key, result);
  return result;
}

}  // namespace faultline::profile
