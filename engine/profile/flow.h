// What is known of each root at each place, for one group of fields.
//
// A state is one root in one epoch (versions.h). Evidence stands in states. What an epoch starts with comes
// from the epoch before it (through a write), from several that meet, or, for a new root, from the operands
// of its join: equations, solved by going down from "still anything". Evidence also flows backwards: what
// stands after a write or a join and post-dominates it says something of the epochs before.
#pragma once
#include <array>
#include <functional>
#include <vector>

#include <c10/util/SmallVector.h>

#include "engine/profile/fact_pool.h"
#include "engine/profile/objects.h"
#include "engine/profile/versions.h"

namespace faultline::profile {

// An observation by a profile node, shared by all flows.
struct Observation {
  int32_t root;
  Pos at;
  int32_t control;
  FactId fact;
  const Node* node;
};

struct Evidence {
  Pos at = 0;
  int32_t control = 0;
  FactId fact = kNoFact;
  const Node* node = nullptr;  // nullptr: derived from other evidence
  int32_t source_state = -1;   // of derived evidence: the state it comes from …
  Pos source_at = 0;           // … and the place in it
  int32_t before = -1;         // nearest evidence that dominates it, in the same state
  int32_t after = -1;          // nearest evidence that post-dominates it
  FactId upto = kNoFact;       // this one and all that dominate it
  FactId onwards = kNoFact;    // this one and all that post-dominate it
  bool leaves = false;         // what post-dominates it reaches out of its control block
  bool local = true;           // rests on nodes that run only if its own block does
};

struct StatePart {
  int32_t state;  // kAbsent, kUnfollowed or a state
  Pos at;
  int32_t arm;
};

struct State {
  int32_t root = 0;
  Pos created = 0;
  int32_t write = -1;  // the write that made the epoch
  bool joins = false;  // parts meet here
  bool loop = false;
  std::vector<StatePart> parts;
  c10::SmallVector<int32_t, 4> evidence;  // by position
  FactId total = kNoFact;                 // all evidence together, wherever it stands
  FactId in = kNoFact;
};

// How a place is answered: which evidence was used. For provenance.
struct Trail {
  int32_t state = -1;
  int32_t dominating = -1;
  int32_t post_dominating = -1;
};

class Flow {
 public:
  struct Context {
    const FlowProgram& program;
    Objects& objects;
    const GradModes& modes;
    Reasons& reasons;
    FactPool& pool;
    const std::vector<bool>& dead;  // per control block
  };

  Flow(const Context& context, uint8_t fields, const std::vector<Observation>& observations,
       const std::vector<int32_t>& writes);

  uint8_t fields() const { return fields_; }
  FactId answer(int32_t root, Pos at) const;
  Trail trailIn(int32_t state, Pos at) const;
  FactPool& pool() const { return c_.pool; }
  // Two places with equal epochs see the same object in the same condition.
  int32_t epoch(int32_t root, Pos at) const;

  const std::vector<State>& states() const { return states_; }
  const std::vector<Evidence>& evidence() const { return evidence_; }

 private:
  struct Pending;

  void assignVersions(const std::vector<int32_t>& writes);
  int32_t stateAt(int32_t root, Pos at);
  int32_t findState(int32_t root, Pos at) const;
  void completeStates();
  void fillParts(int32_t state, int32_t version);
  void placeEvidence(const std::vector<Observation>& observations);
  void deriveAtMerges();
  void linkBackwards();
  void linkForwards();
  void solve();
  FactId evaluate(int32_t state) const;
  FactId throughWrite(const State& state, FactId before) const;
  FactId backThroughWrite(const State& state, FactId after) const;
  bool mayRaise(const Write& write, int32_t step) const;
  FactId answerIn(int32_t state, Pos at) const;
  int32_t dominating(int32_t state, Pos at) const;
  int32_t postDominating(int32_t state, Pos at) const;
  FactId pick(FactId in, FactId dominating, FactId after, FactId total) const;

  Context c_;
  uint8_t fields_;
  std::vector<State> states_;
  std::vector<Evidence> evidence_;
  std::vector<Versions> versions_;
  std::vector<int32_t> versions_of_;  // per root; -1: nothing reaches it
  std::vector<int32_t> birth_version_;
  ska::flat_hash_map<uint64_t, int32_t>
      later_states_;  // (root, version) → state, for other epochs than the first
  std::vector<std::pair<int32_t, int32_t>> unfilled_;  // (state, version)
  // What pick made of (in, dominating, after, total).
  struct Picked {
    std::array<FactId, 4> from;
    bool operator==(const Picked&) const = default;
  };
  struct PickedHash {
    size_t operator()(const Picked& key) const;
  };
  mutable ska::flat_hash_map<Picked, FactId, PickedHash> picked_;
};

}  // namespace faultline::profile
