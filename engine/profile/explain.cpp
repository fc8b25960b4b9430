#include "engine/profile/explain.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace faultline::profile {
namespace {

// An answer may rest on very many nodes (a join over a thousand arms); nobody reads more than these.
constexpr size_t kMostEvidence = 64;
constexpr size_t kMostPlaces = 256;

bool says(const Analysis& analysis, const Node* node, FactId fact) {
  const ProfileNode* read = analysis.profileNode(node);
  return read != nullptr && read->literal != kNoFact && analysis.pool().sameValues(read->literal, fact);
}

const char* nameOfJoin(const Analysis& analysis, const State& state) {
  if (!state.joins) return "before a write that leaves it";
  if (state.loop) return "values carried round the loop";
  size_t alive = 0;
  for (const StatePart& part : state.parts) {
    alive += part.arm < 0 || !analysis.isDead(part.arm) ? 1 : 0;
  }
  return alive > 1 ? "join of both arms" : "the arm that ran";
}

const char* nameOfEvidence(const Analysis& analysis, const Evidence& evidence, int32_t step, bool dominates) {
  const Step& use = analysis.program().step(step);
  if (evidence.node == nullptr) return dominates ? "join of both arms" : "a later node";
  const Step& seen = analysis.program().step(analysis.program().stepOf(evidence.node));
  if (evidence.node->owningGraph() != use.node->owningGraph())
    return "the other side of a subgraph's boundary";
  if (seen.place == use.place)
    return dominates ? "an earlier node of the same block" : "a later node of the same block";
  return dominates ? "a dominating node" : "a later node of an enclosing block";
}

}  // namespace

Provenance explain(const Analysis& analysis, const Value* value, int32_t step, const Answer& answer) {
  Provenance result;
  const Ref ref = analysis.objects().ref(value);
  if (ref.kind != RefKind::Tensor || !analysis.pool().speaks(answer.fact)) return result;
  auto add = [&](const Node* node) {
    if (std::find(result.evidence.begin(), result.evidence.end(), node) == result.evidence.end()) {
      result.evidence.push_back(node);
    }
  };
  struct Place {
    const Flow* flow;
    int32_t state;
    Pos at;
  };
  std::vector<Place> places;  // the nearest first
  std::set<std::tuple<const Flow*, int32_t, Pos>> seen;
  auto visit = [&](const Flow* flow, int32_t state, Pos at) {
    if (state < 0 || places.size() >= kMostPlaces) return;
    if (seen.emplace(flow, state, at).second) places.push_back({flow, state, at});
  };
  const Pos here = FlowProgram::before(step);
  const auto& flows = analysis.flows();
  for (size_t i = 0; i < flows.size(); ++i) {
    const Flow& flow = *flows[i];
    if (flow.pool().speaks(flow.answer(ref.id, here))) visit(&flow, flow.epoch(ref.id, here), here);
  }
  for (size_t next = 0; next < places.size() && result.evidence.size() < kMostEvidence; ++next) {
    const Place place = places[next];
    const Flow& flow = *place.flow;
    const State& state = flow.states()[static_cast<size_t>(place.state)];
    const Trail trail = flow.trailIn(place.state, place.at);
    const bool first = result.place == nullptr;
    auto use = [&](int32_t index) {
      const Evidence& evidence = flow.evidence()[static_cast<size_t>(index)];
      if (!flow.pool().speaks(evidence.fact)) return;
      if (evidence.node != nullptr) {
        add(evidence.node);
      } else if (evidence.source_state != place.state) {
        visit(&flow, evidence.source_state, evidence.source_at);
      } else {
        // The If as a whole: what its arms say.
        const int32_t close = FlowProgram::stepAt(evidence.source_at);
        for (int32_t arm : analysis.program().blocksOf(analysis.program().step(close).match)) {
          if (!analysis.isDead(arm))
            visit(&flow, place.state, FlowProgram::before(analysis.program().control(arm).end));
        }
      }
    };
    FactId covered = kNoFact;
    if (trail.dominating >= 0) {
      covered = flow.evidence()[static_cast<size_t>(trail.dominating)].upto;
      if (first && flow.pool().speaks(covered)) {
        result.place =
            nameOfEvidence(analysis, flow.evidence()[static_cast<size_t>(trail.dominating)], step, true);
      }
      // The nearest node may leave fields to those that dominate it.
      for (int32_t e = trail.dominating; e >= 0; e = flow.evidence()[static_cast<size_t>(e)].before) {
        use(e);
        if (flow.pool().complete(flow.evidence()[static_cast<size_t>(e)].fact, flow.fields())) break;
      }
    }
    if (covered != kNoFact && flow.pool().complete(covered, flow.fields())) continue;
    if (!flow.pool().silent(state.in) && !state.parts.empty() && flow.pool().speaks(state.in)) {
      if (result.place == nullptr) result.place = nameOfJoin(analysis, state);
      for (const StatePart& part : state.parts) {
        if (part.arm >= 0 && analysis.isDead(part.arm)) continue;
        visit(&flow, part.state, part.at);
      }
    }
    if (trail.post_dominating >= 0) {
      const Evidence& next = flow.evidence()[static_cast<size_t>(trail.post_dominating)];
      if (result.place == nullptr && flow.pool().speaks(next.onwards)) {
        result.place = nameOfEvidence(analysis, next, step, false);
      }
      for (int32_t e = trail.post_dominating; e >= 0; e = flow.evidence()[static_cast<size_t>(e)].after) {
        use(e);
        if (flow.pool().complete(flow.evidence()[static_cast<size_t>(e)].fact, flow.fields())) break;
      }
      if (flow.pool().complete(next.onwards, flow.fields())) continue;
    }
    for (int32_t e : state.evidence) {
      if (result.evidence.size() >= kMostEvidence) break;
      use(e);
    }
    if (result.place == nullptr && !state.evidence.empty()) result.place = "nodes that do not always run";
  }
  if (answer.clone != nullptr) add(answer.clone);
  if (isProfile(value->node()) && says(analysis, value->node(), answer.fact)) result.place = "direct feed";
  if (result.place == nullptr && answer.clone != nullptr) result.place = "direct feed";
  return result;
}

const Node* nodeSaying(const Analysis& analysis, const Value* value, const Answer& answer,
                       const Provenance& from) {
  const Value* feed = value;
  for (int hops = 0; hops < 8 && isProfile(feed->node()); ++hops, feed = feed->node()->input()) {
    if (says(analysis, feed->node(), answer.fact)) return feed->node();
  }
  for (const Node* node : from.evidence) {
    if (says(analysis, node, answer.fact)) return node;
  }
  return nullptr;
}

bool feedSays(const Analysis& analysis, int32_t step, size_t offset, const Answer& answer) {
  const int32_t feed = analysis.objects().operands(step)[offset].feed;
  if (feed < 0 || analysis.program().step(feed).place != analysis.program().step(step).place) return false;
  const FactId said = analysis.profileNodeAt(feed).literal;
  return said != kNoFact && analysis.pool().sameValues(said, answer.fact);
}

}  // namespace faultline::profile
