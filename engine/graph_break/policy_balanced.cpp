// K pieces as equal as they can be: the heaviest is as light as any division makes it, and of those divisions
// each cut is the nearest to its even share.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/graph_break/break_reasons.h"
#include "engine/graph_break/parameter_uses.h"
#include "engine/graph_break/policy.h"

namespace faultline {

BreakPolicy BreakPolicy::balanced(size_t pieces, Weight weight) {
  BreakPolicy policy;
  policy.kind_ = Kind::Balanced;
  policy.count_ = pieces;
  policy.weight_ = weight;
  return policy;
}

BreakPolicy BreakPolicy::balanced(size_t pieces, std::map<std::string, double> weights) {
  BreakPolicy policy = balanced(pieces, Weight::Given);
  policy.weights_ = std::move(weights);
  return policy;
}

BreakPolicy BreakPolicy::balancedByTime(size_t pieces, std::map<std::string, double> microseconds) {
  BreakPolicy policy = balanced(pieces, Weight::Time);
  policy.weights_ = std::move(microseconds);
  return policy;
}

Result<BreakPolicy> readBalanced(const std::vector<std::string>& words) {
  using Weight = BreakPolicy::Weight;
  Weight weight = Weight::Ops;
  if (words.size() == 2) {
    weight = words[1] == "bytes" ? Weight::Bytes : words[1] == "time" ? Weight::Time : Weight::Ops;
  }
  if (words.empty() || words.size() > 2 ||
      (words.size() == 2 && weight == Weight::Ops && words[1] != "ops")) {
    return refuseArguments("balanced");
  }
  auto pieces = readCount(words[0], "balanced:K with K");
  if (!pieces) {
    return tl::make_unexpected(pieces.error());
  }
  return BreakPolicy::balanced(*pieces, weight);
}

namespace {

// Prefix sums of weights: the weight of ops [a, b) is sums[b] - sums[a].
using Sums = std::vector<double>;

// The largest b with sums[b] - sums[a] <= most: how far a piece that begins at `a` may go.
size_t furthest(const Sums& sums, size_t a, double most) {
  return static_cast<size_t>(
             std::upper_bound(sums.begin() + static_cast<std::ptrdiff_t>(a), sums.end(), sums[a] + most) -
             sums.begin()) -
         1;
}

bool fits(const Sums& sums, size_t pieces, double most) {
  size_t at = 0;
  for (size_t k = 0; k < pieces && at + 1 < sums.size(); ++k) {
    const size_t next = furthest(sums, at, most);
    if (next == at) {
      return false;
    }
    at = next;
  }
  return at + 1 == sums.size();
}

// Weights of what stands at either side of rounding are told apart by no one.
double lightest(const Sums& sums, size_t pieces) {
  double low = 0, high = sums.back();
  for (int step = 0; step < 100 && high - low > 1e-9 * sums.back(); ++step) {
    const double middle = (low + high) / 2;
    (fits(sums, pieces, middle) ? high : low) = middle;
  }
  return high;
}

// Positions of the K - 1 cuts among ops, rising; every piece has an op.
std::vector<size_t> divide(const Sums& sums, size_t pieces) {
  const size_t ops = sums.size() - 1;
  const double most = lightest(sums, pieces);
  // From where the rest can still be carried by the pieces that are left.
  std::vector<size_t> earliest(pieces, ops);
  for (size_t k = pieces - 1; k > 0; --k) {
    const size_t end = k + 1 < pieces ? earliest[k + 1] : ops;
    const auto begin = std::lower_bound(sums.begin(), sums.end(), sums[end] - most - 1e-9 * sums.back());
    earliest[k] = static_cast<size_t>(begin - sums.begin());
  }
  std::vector<size_t> cuts;
  size_t at = 0;
  for (size_t k = 1; k < pieces; ++k) {
    const double share = sums.back() * static_cast<double>(k) / static_cast<double>(pieces);
    const size_t low = std::max(earliest[k], at + 1);
    const size_t high =
        std::max(low, std::min(furthest(sums, at, most + 1e-9 * sums.back()), ops - (pieces - k)));
    // Of places that weigh the same the last: ops that weigh nothing stay with what comes before.
    auto above = std::upper_bound(sums.begin(), sums.end(), share);
    size_t best = std::clamp(static_cast<size_t>(above - sums.begin()) - 1, low, high);
    if (best < high && sums[best + 1] - share < share - sums[best]) {
      ++best;
    }
    best = std::min(high, furthest(sums, best, 0));
    cuts.push_back(at = best);
  }
  return cuts;
}

}  // namespace

Result<Wishes> wishesBalanced(const GraphFacts& facts, const BreakPolicy& policy) {
  if (policy.count() == 0) {
    return fail(ErrorKind::Invalid, "there cannot be 0 pieces");
  }
  const WorkingCopy& work = facts.work;
  std::vector<double> weight(facts.nodes.size(), 0);
  std::string_view by = "by ops", unit;
  if (policy.weight() == BreakPolicy::Weight::Bytes) {
    by = "by bytes of parameters";
    for (const ParameterUse& parameter : parameterUses(facts)) {
      if (parameter.first == SIZE_MAX) {
        continue;
      }
      if (!parameter.bytes) {
        return fail(ErrorKind::Invalid,
                    fmt::format("the size of {} is not known: its type is not complete", parameter.name));
      }
      weight[parameter.first] += static_cast<double>(*parameter.bytes);
    }
  } else if (policy.weight() == BreakPolicy::Weight::Time && policy.weights().empty()) {
    return fail(ErrorKind::Invalid, "nothing was measured: a balance by time needs the times of a run");
  } else if (policy.weight() != BreakPolicy::Weight::Ops) {
    const bool measured = policy.weight() == BreakPolicy::Weight::Time;
    by = measured ? "by measured time" : "by the weights given";
    unit = measured ? " us" : "";
    for (const auto& [name, given] : policy.weights()) {
      const Node* node = work.names.find(name);
      if (!node || !(given >= 0) || !std::isfinite(given)) {
        return fail(ErrorKind::Invalid, node ? fmt::format("{} cannot weigh {}", name, given)
                                             : fmt::format("no op is named '{}'", name));
      }
      weight[work.topLevel(node)] += given;
    }
  } else {
    weight.assign(weight.size(), 1);
  }
  std::vector<size_t> ops;
  Sums sums{0};
  for (size_t i = 0; i < facts.nodes.size(); ++i) {
    if (!facts.nodes[i].constant) {
      ops.push_back(i);
      sums.push_back(sums.back() + weight[i]);
    }
  }
  Wishes wishes;
  if (ops.empty()) {
    return wishes;
  }
  const size_t pieces = std::min(policy.count(), ops.size());
  if (pieces < policy.count()) {
    const std::string& last = work.names.of(work.nodes[ops.back()]);
    wishes.refused.push_back(refusedCut(BreakReason::too_few_ops, last, last));
  }
  if (sums.back() == 0) {
    return fail(ErrorKind::Invalid, fmt::format("nothing to balance {}: everything weighs nothing", by));
  }
  size_t begin = 0;
  for (size_t cut : divide(sums, pieces)) {
    wishes.cuts.push_back(wishAfter(facts, ops[cut - 1],
                                    fmt::format("{} pieces {}: {:.0f} of {:.0f}{} here", pieces, by,
                                                sums[cut] - sums[begin], sums.back(), unit)));
    begin = cut;
  }
  return wishes;
}

}  // namespace faultline
