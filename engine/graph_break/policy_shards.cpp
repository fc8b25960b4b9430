// One piece per unit of parameters that are gathered before it and freed behind it, as FSDP wraps modules.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/graph_break/break_reasons.h"
#include "engine/graph_break/parameter_uses.h"
#include "engine/graph_break/policy.h"

namespace faultline {

BreakPolicy BreakPolicy::shards(Units units) {
  BreakPolicy policy;
  policy.kind_ = Kind::Shards;
  policy.units_ = std::move(units);
  return policy;
}

namespace {

std::vector<std::string> splitAtPlus(const std::string& word) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= word.size();) {
    const size_t end = std::min(word.find('+', begin), word.size());
    names.push_back(word.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

// "fc1_weight" and "fc1_bias" belong together, and so do "w0" and "b0" where one op is the first to use both.
BreakPolicy::Units unitsByName(const std::vector<ParameterUse>& parameters) {
  BreakPolicy::Units units;
  std::map<std::string, size_t> by_stem;
  std::map<size_t, size_t> by_op;
  for (const ParameterUse& parameter : parameters) {
    const size_t end = parameter.name.find_last_of("_.");
    const bool stemmed = end != std::string::npos && end > 0;
    const std::string stem = stemmed ? parameter.name.substr(0, end) : parameter.name + ".";
    auto known = by_stem.find(stem);
    if (known == by_stem.end()) {
      auto other = parameter.first == SIZE_MAX ? by_op.end() : by_op.find(parameter.first);
      known = by_stem.emplace(stem, other == by_op.end() ? units.size() : other->second).first;
    }
    if (known->second == units.size()) {
      units.emplace_back();
    }
    units[known->second].push_back(parameter.name);
    by_op.emplace(parameter.first, known->second);
  }
  return units;
}

}  // namespace

Result<BreakPolicy> readShards(const std::vector<std::string>& words) {
  BreakPolicy::Units units;
  for (const std::string& word : words) {
    units.push_back(splitAtPlus(word));
    if (std::count(units.back().begin(), units.back().end(), "") > 0) {
      return refuseArguments("shards");
    }
  }
  return BreakPolicy::shards(std::move(units));
}

Result<Wishes> wishesShards(const GraphFacts& facts, const BreakPolicy& policy) {
  const WorkingCopy& work = facts.work;
  const std::vector<ParameterUse> parameters = parameterUses(facts);
  const BreakPolicy::Units units = policy.units().empty() ? unitsByName(parameters) : policy.units();
  std::map<size_t, size_t> unit_of;  // graph input to unit
  for (size_t u = 0; u < units.size(); ++u) {
    for (const std::string& name : units[u]) {
      const ParameterUse* parameter = findParameter(parameters, name);
      if (!parameter) {
        return unknownParameter(parameters, name);
      }
      if (!unit_of.emplace(parameter->input, u).second) {
        return fail(ErrorKind::Invalid, fmt::format("{} stands in two units", name));
      }
    }
  }
  std::vector<std::vector<size_t>> used_by(work.nodes.size());  // units, by top-level node
  for (const auto& [input, unit] : unit_of) {
    for (const auto& use : work.graph->inputs()[input]->uses()) {
      if (use.user != work.graph->return_node()) {
        auto& used = used_by[work.topLevel(use.user)];
        if (std::find(used.begin(), used.end(), unit) == used.end()) {
          used.push_back(unit);
        }
      }
    }
  }
  Wishes wishes;
  size_t current = SIZE_MAX;
  std::vector<bool> begun(units.size(), false);
  for (size_t i = 0; i < work.nodes.size(); ++i) {
    std::sort(used_by[i].begin(), used_by[i].end());
    size_t fresh = SIZE_MAX;
    for (size_t unit : used_by[i]) {
      if (!begun[unit]) {
        // An op that is the first of two units cannot be cut in two.
        if (fresh != SIZE_MAX) {
          wishes.refused.push_back(
              refusedCut(BreakReason::one_op, work.names.of(work.nodes[i]), work.names.of(work.nodes[i])));
        }
        fresh = fresh == SIZE_MAX ? unit : fresh;
        begun[unit] = true;
      } else if (unit != current) {
        wishes.refused.push_back(
            refusedCut(BreakReason::unit_ended, work.names.of(work.nodes[i]), work.names.of(work.nodes[i])));
      }
    }
    if (fresh != SIZE_MAX) {
      if (current != SIZE_MAX) {
        wishBefore(facts, i, fmt::format("unit {}: {}", fresh, fmt::join(units[fresh], ", ")), wishes);
      }
      current = fresh;
    }
  }
  return wishes;
}

}  // namespace faultline
