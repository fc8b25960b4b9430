#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/graph_break/break_reasons.h"
#include "engine/graph_break/opening.h"
#include "engine/graph_break/parameter_uses.h"
#include "engine/graph_break/policy.h"
#include "faultline/graph_break.h"

namespace faultline {

namespace {

Result<Wishes> wishesOf(const GraphFacts& facts, const BreakPolicy& policy) {
  switch (policy.kind()) {
#define FAULTLINE_POLICY(Name, word, arguments, help) \
  case BreakPolicy::Kind::Name:                       \
    return wishes##Name(facts, policy);
#include "faultline/break_policies.def"
#undef FAULTLINE_POLICY
  }
  return fail(ErrorKind::Invalid, "a policy of no kind");
}

PlannedPiece describe(const GraphFacts& facts, size_t begin, size_t end) {
  const WorkingCopy& work = facts.work;
  PlannedPiece piece;
  piece.block = begin < end ? work.blockName(work.nodes[begin]->owningBlock()) : std::string();
  const bool any_compiled = hasCompiledPart(facts, begin, end);
  for (size_t i = begin; i < end; ++i) {
    if (facts.nodes[i].constant) {
      continue;
    }
    piece.ops.push_back(work.nameOf(i));
    if (!facts.nodes[i].compiled) {
      if (!any_compiled && piece.eager_reason.empty()) {
        piece.eager_reason = facts.nodes[i].reason;
      }
      piece.eager_ops.push_back({piece.ops.back(), facts.nodes[i].reason});
    }
  }
  if (!any_compiled && piece.eager_reason.empty()) {
    piece.eager_reason = "no gradient comes back to any of its ops";
  }
  const Part outside = boundary(work, begin, end);
  for (const Value* value : outside.inputs) {
    piece.inputs.push_back(work.valueName(value));
  }
  for (const Value* value : outside.outputs) {
    piece.outputs.push_back(work.valueName(value));
  }
  return piece;
}

size_t pieceOf(const BreakPlan& plan, size_t node) {
  return static_cast<size_t>(std::upper_bound(plan.ends.begin(), plan.ends.end(), node) - plan.ends.begin());
}

bool holdsOps(const GraphFacts& facts, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (!facts.nodes[i].constant && !facts.nodes[i].opened) {
      return true;
    }
  }
  return false;
}

std::string nameBefore(const GraphFacts& facts, size_t end) {
  while (end > 0 && facts.nodes[end - 1].constant) {
    --end;
  }
  return end > 0 ? facts.work.nameOf(end - 1) : std::string();
}

// Cuts in order, each place once, none before the first op or behind the last.
void placeCuts(const GraphFacts& facts, Wishes& wishes, BreakPlan& plan) {
  size_t last_op = 0;
  for (size_t i = 0; i < facts.nodes.size(); ++i) {
    last_op = facts.nodes[i].constant ? last_op : i;
  }
  std::stable_sort(wishes.cuts.begin(), wishes.cuts.end(),
                   [](const Wish& a, const Wish& b) { return a.end < b.end; });
  auto same = [](const Wish& a, const Wish& b) { return a.end == b.end; };
  wishes.cuts.erase(std::unique(wishes.cuts.begin(), wishes.cuts.end(), same), wishes.cuts.end());
  plan.refused = std::move(wishes.refused);
  std::vector<Wish> placed;
  for (Wish& wish : wishes.cuts) {
    if (wish.end <= last_op) {
      placed.push_back(std::move(wish));
      continue;
    }
    bool said = false;
    for (RefusedCut& refused : plan.refused) {
      said = said || refused.instead == wish.after;
      refused.instead = refused.instead == wish.after ? std::string() : refused.instead;
    }
    if (!said) {
      plan.refused.push_back(refusedCut(BreakReason::nothing_after, wish.after, wish.after));
    }
  }
  if (facts.work.opensAny()) {
    const std::vector<Wish> forced = forcedCuts(facts);
    placed.insert(placed.end(), forced.begin(), forced.end());
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Wish& a, const Wish& b) { return a.end < b.end; });
    placed.erase(std::unique(placed.begin(), placed.end(), same), placed.end());
  }
  placed.push_back({facts.nodes.size(), {}, {}});
  const Wish* cut = nullptr;  // the last one before what comes
  size_t begin = 0;
  for (const Wish& wish : placed) {
    if (!facts.work.opensAny() || holdsOps(facts, begin, wish.end)) {
      if (cut && !plan.ends.empty()) {
        plan.cuts.push_back({nameBefore(facts, cut->end), cut->reason});
      }
      plan.ends.push_back(wish.end);
    }
    begin = wish.end;
    cut = &wish;
  }
}

void placeBuckets(const GraphFacts& facts, std::vector<WishedBucket>&& wished, BreakPlan& plan) {
  for (WishedBucket& bucket : wished) {
    plan.buckets.push_back(
        {std::move(bucket.parameters), bucket.bytes, pieceOf(plan, bucket.completed_by), {}});
  }
  for (size_t b = 1; b < wished.size(); ++b) {
    for (size_t earlier = 0; earlier < b; ++earlier) {
      if (plan.buckets[earlier].piece == plan.buckets[b].piece) {
        const std::string& op = facts.work.names.of(facts.work.nodes[wished[b].completed_by]);
        plan.buckets[b].note =
            fmt::format("{} completes bucket {} too: no cut can stand between them", op, earlier);
      }
    }
  }
}

}  // namespace

Result<BreakPlan> planBreaks(const Graph& graph, const BreakPolicy& policy) {
  auto copy = WorkingCopy::look(graph);
  if (!copy) {
    return tl::make_unexpected(copy.error());
  }
  auto opened = blocksToOpen(**copy, policy);
  if (opened && !opened->empty()) {
    copy = WorkingCopy::look(graph, *opened);
  }
  if (!opened || !copy) {
    return tl::make_unexpected(!opened ? opened.error() : copy.error());
  }
  const WorkingCopy& work = **copy;
  const GraphFacts facts(work, false);
  auto wishes = wishesOf(facts, policy);
  if (!wishes) {
    return tl::make_unexpected(wishes.error());
  }
  BreakPlan plan;
  plan.opened = std::move(*opened);
  placeCuts(facts, *wishes, plan);
  size_t before = 0;
  for (size_t end : plan.ends) {
    plan.pieces.push_back(describe(facts, pieceBegin(work, before, end), end));
    before = end;
  }
  for (const ParameterUse& parameter : parameterUses(facts)) {
    if (parameter.first != SIZE_MAX) {
      PlannedPiece& piece = plan.pieces[pieceOf(plan, parameter.first)];
      piece.parameters.push_back(parameter.name);
      piece.bytes += parameter.bytes.value_or(0);
    }
  }
  placeBuckets(facts, std::move(wishes->buckets), plan);
  return plan;
}

}  // namespace faultline
