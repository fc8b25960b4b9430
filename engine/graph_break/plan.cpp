#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "engine/autodiff/differentiability.h"
#include "engine/graph_break/break_reasons.h"
#include "engine/graph_break/parts.h"
#include "faultline/graph_break.h"

namespace faultline {

BreakPolicy BreakPolicy::none() { return {}; }

BreakPolicy BreakPolicy::after(std::vector<std::string> names) {
  BreakPolicy policy;
  policy.kind_ = Kind::After;
  policy.names_ = std::move(names);
  return policy;
}

BreakPolicy BreakPolicy::every(size_t ops) {
  BreakPolicy policy;
  policy.kind_ = Kind::Every;
  policy.ops_ = ops;
  return policy;
}

namespace {

struct Wish {
  size_t end;          // index behind the node
  std::string after;   // its name
  std::string reason;  // the policy's words
};

struct Wishes {
  std::vector<Wish> cuts;
  std::vector<RefusedCut> refused;
};

bool isOp(const GraphFacts& facts, size_t i) { return !facts.nodes[i].constant; }

Result<Wishes> wishesAfter(const GraphFacts& facts, const std::vector<std::string>& names) {
  const WorkingCopy& work = facts.work;
  Wishes wishes;
  for (const std::string& name : names) {
    const Node* node = work.names.find(name);
    if (!node) {
      const std::string nearest = work.names.nearest(name);
      return fail(ErrorKind::Invalid,
                  nearest.empty() ? fmt::format("no op is named '{}': the graph has none", name)
                                  : fmt::format("no op is named '{}'; the nearest is '{}'", name, nearest));
    }
    if (node->owningBlock() != work.graph->block()) {
      wishes.refused.push_back(refusedCut(BreakReason::inside_block, name, name));
    } else if (isConstantLike(node)) {
      wishes.refused.push_back(refusedCut(BreakReason::constant, name, name));
    } else {
      wishes.cuts.push_back({work.index.at(node) + 1, name, fmt::format("asked for after {}", name)});
    }
  }
  std::stable_sort(wishes.cuts.begin(), wishes.cuts.end(),
                   [](const Wish& a, const Wish& b) { return a.end < b.end; });
  auto same = [](const Wish& a, const Wish& b) { return a.end == b.end; };
  wishes.cuts.erase(std::unique(wishes.cuts.begin(), wishes.cuts.end(), same), wishes.cuts.end());
  return wishes;
}

Wishes wishesEvery(const GraphFacts& facts, size_t ops) {
  Wishes wishes;
  size_t count = 0;
  size_t last_op = 0;
  for (size_t i = 0; i < facts.nodes.size(); ++i) {
    if (isOp(facts, i)) {
      last_op = i;
    }
  }
  for (size_t i = 0; i < last_op; ++i) {
    if (isOp(facts, i) && ++count % ops == 0) {
      const std::string& name = facts.work.names.of(facts.work.nodes[i]);
      wishes.cuts.push_back({i + 1, name, fmt::format("every {} ops", ops)});
    }
  }
  return wishes;
}

int64_t bytesOf(const c10::TypePtr& type) {
  auto tensor = type->cast<c10::TensorType>();
  const auto sizes = tensor ? tensor->sizes().concrete_sizes() : std::nullopt;
  if (!sizes || !tensor->scalarType()) {
    return 0;
  }
  int64_t bytes = static_cast<int64_t>(c10::elementSize(*tensor->scalarType()));
  for (int64_t size : *sizes) {
    bytes *= size;
  }
  return bytes;
}

bool isParameter(const c10::TypePtr& type) {
  auto tensor = type->cast<c10::TensorType>();
  return tensor && tensor->requiresGrad().value_or(true);
}

// The piece in which the gradient of each input becomes whole: that of its first use that a gradient comes
// back from.
std::vector<size_t> readyIn(const GraphFacts& facts, const std::vector<size_t>& ends) {
  const WorkingCopy& work = facts.work;
  std::vector<size_t> ready;
  for (const Value* input : work.graph->inputs()) {
    size_t first = SIZE_MAX;
    for (const auto& use : input->uses()) {
      if (use.user != work.graph->return_node() && passesGradient(use.user, use.offset)) {
        first = std::min(first, work.topLevel(use.user));
      }
    }
    auto it = std::upper_bound(ends.begin(), ends.end(), first);
    ready.push_back(first == SIZE_MAX ? SIZE_MAX : static_cast<size_t>(it - ends.begin()));
  }
  return ready;
}

PlannedPiece describe(const GraphFacts& facts, size_t begin, size_t end) {
  const WorkingCopy& work = facts.work;
  PlannedPiece piece;
  bool any_compiled = false;
  for (const Segment& segment : splitIntoSegments(facts, begin, end, false)) {
    for (const Part& part : segment.parts) {
      any_compiled = any_compiled || part.compiled;
    }
  }
  for (size_t i = begin; i < end; ++i) {
    if (!isOp(facts, i)) {
      continue;
    }
    piece.ops.push_back(work.names.of(work.nodes[i]));
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
  const Part outside = boundary(facts, begin, end);
  for (const Value* value : outside.inputs) {
    piece.inputs.push_back(work.valueName(value));
  }
  for (const Value* value : outside.outputs) {
    piece.outputs.push_back(work.valueName(value));
  }
  return piece;
}

}  // namespace

Result<BreakPlan> planBreaks(const Graph& graph, const BreakPolicy& policy) {
  if (policy.kind() == BreakPolicy::Kind::Every && policy.ops() == 0) {
    return fail(ErrorKind::Invalid, "a piece cannot have 0 ops");
  }
  auto copy = WorkingCopy::make(graph);
  if (!copy) {
    return tl::make_unexpected(copy.error());
  }
  const WorkingCopy& work = **copy;
  const GraphFacts facts(work, false);
  Wishes wishes;
  if (policy.kind() == BreakPolicy::Kind::After) {
    auto asked = wishesAfter(facts, policy.names());
    if (!asked) {
      return tl::make_unexpected(asked.error());
    }
    wishes = std::move(*asked);
  } else if (policy.kind() == BreakPolicy::Kind::Every) {
    wishes = wishesEvery(facts, policy.ops());
  }

  BreakPlan plan;
  plan.refused = std::move(wishes.refused);
  size_t begin = 0;
  for (const Wish& wish : wishes.cuts) {
    auto has_op = [&](size_t from, size_t to) {
      for (size_t i = from; i < to; ++i) {
        if (isOp(facts, i)) {
          return true;
        }
      }
      return false;
    };
    if (!has_op(wish.end, work.nodes.size())) {
      plan.refused.push_back(refusedCut(BreakReason::nothing_after, wish.after, wish.after));
    } else {
      plan.ends.push_back(wish.end);
      plan.cuts.push_back({wish.after, wish.reason});
      begin = wish.end;
    }
  }
  plan.ends.push_back(work.nodes.size());

  begin = 0;
  for (size_t end : plan.ends) {
    plan.pieces.push_back(describe(facts, begin, end));
    begin = end;
  }
  const std::vector<size_t> ready = readyIn(facts, plan.ends);
  for (size_t i = 0; i < ready.size(); ++i) {
    if (ready[i] != SIZE_MAX && isParameter(work.input_types[i])) {
      plan.pieces[ready[i]].parameters.push_back(work.input_names[i]);
      plan.pieces[ready[i]].bytes += bytesOf(work.input_types[i]);
    }
  }
  return plan;
}

}  // namespace faultline
