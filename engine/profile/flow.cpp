#include "engine/profile/flow.h"

#include <algorithm>
#include <map>
#include <queue>

#include "engine/support/check.h"

namespace faultline::profile {
namespace {

uint64_t pairKey(int32_t a, int32_t b) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32) | static_cast<uint32_t>(b);
}

}  // namespace

Flow::Flow(const Context& context, uint8_t fields, const std::vector<Observation>& observations,
           const std::vector<int32_t>& writes)
    : c_(context), fields_(fields) {
  const std::vector<Root>& roots = c_.objects.roots();
  states_.resize(roots.size());
  versions_of_.assign(roots.size(), -1);
  birth_version_.assign(roots.size(), 0);
  if (!writes.empty()) assignVersions(writes);
  for (size_t i = 0; i < roots.size(); ++i) {
    const int32_t root = static_cast<int32_t>(i);
    if (versions_of_[i] >= 0)
      birth_version_[i] = versions_[static_cast<size_t>(versions_of_[i])].at(roots[i].birth);
    states_[i].root = root;
    states_[i].created = roots[i].birth;
  }
  completeStates();
  placeEvidence(observations);
  deriveAtMerges();
  linkBackwards();
  linkForwards();
  solve();
}

void Flow::assignVersions(const std::vector<int32_t>& writes) {
  const bool gradient = (fields_ & kGradient) != 0;
  Regions& regions = gradient ? c_.objects.groups() : c_.objects.objects();
  const std::vector<Root>& roots = c_.objects.roots();
  auto regionOf = [&](const Root& root) { return gradient ? root.group : root.object; };
  // Closures may still melt together while they are asked for the first time.
  for (int pass = 0; pass < 2; ++pass) {
    for (const Root& root : roots) regions.closure(regionOf(root));
  }
  std::unordered_map<RegionId, std::vector<int32_t>> written;
  for (int32_t write : writes) {
    const Write& w = c_.objects.writes()[static_cast<size_t>(write)];
    const RegionId region = w.everything ? Regions::kWildcard : regionOf(roots[static_cast<size_t>(w.root)]);
    for (RegionId part : regions.closure(region)) written[part].push_back(write);
  }
  std::map<std::vector<RegionId>, int32_t> known;
  for (size_t i = 0; i < roots.size(); ++i) {
    std::vector<RegionId> touched;
    for (RegionId part : regions.closure(regionOf(roots[i]))) {
      if (written.count(part)) touched.push_back(part);
    }
    if (touched.empty()) continue;
    auto [it, fresh] = known.try_emplace(touched, static_cast<int32_t>(versions_.size()));
    if (fresh) {
      std::vector<int32_t> all;
      for (RegionId part : touched) all.insert(all.end(), written[part].begin(), written[part].end());
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
      std::vector<WriteAt> at;
      for (int32_t write : all) at.push_back({c_.objects.writes()[static_cast<size_t>(write)].step, write});
      versions_.emplace_back(c_.program, std::move(at));
    }
    versions_of_[i] = it->second;
  }
}

int32_t Flow::findState(int32_t root, Pos at) const {
  const int32_t versions = versions_of_[static_cast<size_t>(root)];
  if (versions < 0) return root;
  const int32_t version = versions_[static_cast<size_t>(versions)].at(at);
  if (version == birth_version_[static_cast<size_t>(root)]) return root;
  auto it = later_states_.find(pairKey(root, version));
  return it == later_states_.end() ? -1 : it->second;
}

int32_t Flow::stateAt(int32_t root, Pos at) {
  const int32_t versions = versions_of_[static_cast<size_t>(root)];
  if (versions < 0) return root;
  const int32_t version = versions_[static_cast<size_t>(versions)].at(at);
  if (version == birth_version_[static_cast<size_t>(root)]) return root;
  auto [it, fresh] = later_states_.emplace(pairKey(root, version), static_cast<int32_t>(states_.size()));
  const int32_t index = it->second;
  if (fresh) {
    State state;
    state.root = root;
    state.created = versions_[static_cast<size_t>(versions)][version].at;
    states_.push_back(std::move(state));
    unfilled_.emplace_back(index, version);
  }
  return index;
}

void Flow::fillParts(int32_t state, int32_t version) {
  const int32_t root = states_[static_cast<size_t>(state)].root;
  const Version from = versions_[static_cast<size_t>(versions_of_[static_cast<size_t>(root)])][version];
  std::vector<StatePart> parts;
  for (const VersionPart& part : from.parts) parts.push_back({stateAt(root, part.at), part.at, part.arm});
  State& filled = states_[static_cast<size_t>(state)];
  filled.parts = std::move(parts);
  filled.write = from.write;
  filled.joins = from.kind != VersionKind::Write;
  filled.loop = from.kind == VersionKind::LoopBody || from.kind == VersionKind::LoopExit;
}

// Makes every state that a use or a join asks for.
void Flow::completeStates() {
  const std::vector<Root>& roots = c_.objects.roots();
  for (size_t i = 0; i < roots.size(); ++i) {
    if (roots[i].kind == RootKind::Plain) continue;
    std::vector<StatePart> parts;
    for (const FlowOperand& operand : roots[i].operands) {
      parts.push_back(
          {operand.root < 0 ? operand.root : stateAt(operand.root, operand.at), operand.at, operand.arm});
    }
    states_[i].parts = std::move(parts);
    states_[i].joins = true;
    states_[i].loop = roots[i].kind != RootKind::IfResult;
  }
  if (!versions_.empty()) {
    const int32_t count = static_cast<int32_t>(c_.program.steps().size());
    for (int32_t i = 0; i < count; ++i) {
      const Step& step = c_.program.step(i);
      if (!readsOperands(step.kind)) continue;
      const size_t inputs = c_.objects.operandCount(i);
      for (size_t k = 0; k < inputs; ++k) {
        const Ref ref = c_.objects.operands(i)[k].ref;
        if (ref.kind == RefKind::Tensor) stateAt(ref.id, FlowProgram::before(i));
      }
    }
    for (const Write& write : c_.objects.writes()) {
      for (int32_t root : write.brings_in) {
        if (root >= 0) stateAt(root, FlowProgram::before(write.step));
      }
    }
  }
  while (!unfilled_.empty()) {
    const auto [state, version] = unfilled_.back();
    unfilled_.pop_back();
    fillParts(state, version);
  }
}

FactId Flow::throughWrite(const State& state, FactId before) const {
  const Write& write = c_.objects.writes()[static_cast<size_t>(state.write)];
  Fact fact = c_.pool[before];
  const ReasonId why = c_.reasons.of(ReasonKind::EndedBy, write.node);
  auto end = [&](Cell& cell) {
    if (cell.state == CellState::Value || cell.state == CellState::Varies) {
      cell = {CellState::Ended, cell.covers, why, 0};
    }
  };
  if (write.identity) forEachCell(fact, kAllFields & fields_, end);
  if (write.shape && (fields_ & kShape)) {
    const Cell rank = fact.rank;
    for (Cell& cell : fact.sizes) end(cell);
    for (Cell& cell : fact.strides) end(cell);
    if (!write.keeps_rank) {
      fact.rank = rank;
      end(fact.rank);
      fact.sizes.clear();
      fact.strides.clear();
    }
  }
  if (fields_ & kGradient) {
    Cell& grad = fact.requires_grad;
    if (write.lowers) {
      end(grad);
    } else if (grad.known() && grad.value == 0 && mayRaise(write, write.step)) {
      end(grad);
    }
  }
  return c_.pool.intern(fact);
}

// requires_grad only rises by value writes: a 0 found later was 0 before them, a 1 may have come with them.
FactId Flow::backThroughWrite(const State& state, FactId after) const {
  const Write& write = c_.objects.writes()[static_cast<size_t>(state.write)];
  Fact fact = c_.pool[after];
  const ReasonId why = c_.reasons.of(ReasonKind::EndedBy, write.node);
  auto end = [&](Cell& cell) {
    if (cell.speaks()) cell = {CellState::Ended, cell.covers, why, 0};
  };
  if (write.identity) forEachCell(fact, kAllFields & fields_, end);
  if (write.shape && (fields_ & kShape)) {
    for (Cell& cell : fact.sizes) end(cell);
    for (Cell& cell : fact.strides) end(cell);
    if (!write.keeps_rank) {
      end(fact.rank);
      fact.sizes.clear();
      fact.strides.clear();
    }
  }
  if ((fields_ & kGradient) &&
      (write.lowers || !(fact.requires_grad.known() && fact.requires_grad.value == 0))) {
    end(fact.requires_grad);
  }
  return c_.pool.intern(fact);
}

bool Flow::mayRaise(const Write& write, int32_t step) const {
  if (write.everything || write.brings_in.empty()) return true;
  auto certainlyOff = [&](int32_t root) {
    const Cell& grad = c_.pool[answer(root, FlowProgram::before(step))].requires_grad;
    return grad.state == CellState::Neutral || (grad.known() && grad.value == 0 && grad.covers);
  };
  for (int32_t root : write.brings_in) {
    if (root < 0 || !certainlyOff(root)) return true;
  }
  // A view made without grad mode picks up its base's gradient at the next write, wherever that comes from.
  return c_.objects.hasUngradedView(write.root);
}

FactId Flow::evaluate(int32_t index) const {
  const State& state = states_[static_cast<size_t>(index)];
  if (!state.joins) {
    if (state.parts.empty()) return state.in;
    return throughWrite(state, answerIn(state.parts[0].state, state.parts[0].at));
  }
  FactId result = c_.pool.uniform(CellState::Neutral);
  for (const StatePart& part : state.parts) {
    if (part.arm >= 0 && c_.dead[static_cast<size_t>(part.arm)]) continue;
    if (part.state == kAbsent) continue;
    FactId one = kNoFact;
    if (part.state == kUnfollowed) {
      one = c_.pool.uniform(CellState::Nothing, c_.reasons.of(ReasonKind::Container));
    } else {
      one = answerIn(part.state, part.at);
    }
    result = c_.pool.join(result, one);
  }
  return result;
}

void Flow::solve() {
  const std::vector<Root>& roots = c_.objects.roots();
  std::vector<int32_t> equations;
  std::vector<std::vector<int32_t>> dependents(states_.size());
  const FactId anything = c_.pool.uniform(CellState::Neutral);
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    const int32_t index = static_cast<int32_t>(i);
    if (state.parts.empty()) {
      const ReasonId reason = roots[static_cast<size_t>(state.root)].reason;
      state.in = c_.pool.uniform(CellState::Nothing, reason);
      continue;
    }
    state.in = anything;
    equations.push_back(index);
    for (const StatePart& part : state.parts) {
      if (part.state >= 0) dependents[static_cast<size_t>(part.state)].push_back(index);
    }
    if (state.write >= 0 && (fields_ & kGradient)) {
      const Write& write = c_.objects.writes()[static_cast<size_t>(state.write)];
      for (int32_t root : write.brings_in) {
        if (root < 0) continue;
        const int32_t operand = findState(root, FlowProgram::before(write.step));
        if (operand >= 0) dependents[static_cast<size_t>(operand)].push_back(index);
      }
    }
  }
  using Item = std::pair<Pos, int32_t>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  std::vector<bool> queued(states_.size(), false);
  for (int32_t index : equations) {
    queue.emplace(states_[static_cast<size_t>(index)].created, index);
    queued[static_cast<size_t>(index)] = true;
  }
  while (!queue.empty()) {
    const int32_t index = queue.top().second;
    queue.pop();
    queued[static_cast<size_t>(index)] = false;
    State& state = states_[static_cast<size_t>(index)];
    // Only down: what an earlier round gave away does not come back.
    const FactId next = c_.pool.join(state.in, evaluate(index));
    if (next == state.in) continue;
    state.in = next;
    for (int32_t dependent : dependents[static_cast<size_t>(index)]) {
      if (queued[static_cast<size_t>(dependent)]) continue;
      queued[static_cast<size_t>(dependent)] = true;
      queue.emplace(states_[static_cast<size_t>(dependent)].created, dependent);
    }
  }
}

int32_t Flow::dominating(int32_t index, Pos at) const {
  const State& state = states_[static_cast<size_t>(index)];
  auto it = std::lower_bound(state.evidence.begin(), state.evidence.end(), at,
                             [&](int32_t e, Pos pos) { return evidence_[static_cast<size_t>(e)].at < pos; });
  if (it == state.evidence.begin()) return -1;
  int32_t found = *--it;
  while (found >= 0 && !c_.program.contains(evidence_[static_cast<size_t>(found)].control, at)) {
    found = evidence_[static_cast<size_t>(found)].before;
  }
  return found;
}

int32_t Flow::postDominating(int32_t index, Pos at) const {
  const State& state = states_[static_cast<size_t>(index)];
  auto it = std::lower_bound(state.evidence.begin(), state.evidence.end(), at,
                             [&](int32_t e, Pos pos) { return evidence_[static_cast<size_t>(e)].at < pos; });
  if (it == state.evidence.end()) return -1;
  int32_t found = *it;
  while (found >= 0 && !c_.program.contains(evidence_[static_cast<size_t>(found)].control, at)) {
    found = evidence_[static_cast<size_t>(found)].after;
  }
  return found;
}

FactId Flow::answerIn(int32_t index, Pos at) const {
  const State& state = states_[static_cast<size_t>(index)];
  if (state.evidence.empty()) return state.in;
  const int32_t before = dominating(index, at);
  const FactId upto = before < 0 ? kNoFact : evidence_[static_cast<size_t>(before)].upto;
  if (upto != kNoFact && c_.pool.silent(state.in) && c_.pool.complete(upto, fields_)) return upto;
  const int32_t after = postDominating(index, at);
  return pick(state.in, upto, after < 0 ? kNoFact : evidence_[static_cast<size_t>(after)].onwards,
              state.total);
}

FactId Flow::answer(int32_t root, Pos at) const {
  const int32_t state = findState(root, at);
  return state < 0 ? c_.pool.uniform(CellState::Nothing) : answerIn(state, at);
}

Trail Flow::trailIn(int32_t state, Pos at) const {
  return {state, dominating(state, at), postDominating(state, at)};
}

int32_t Flow::epoch(int32_t root, Pos at) const { return findState(root, at); }

}  // namespace faultline::profile
