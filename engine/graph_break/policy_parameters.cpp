// A piece begins where a parameter is used first, so that its hook fires as early as it can.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/graph_break/break_reasons.h"
#include "engine/graph_break/parameter_uses.h"
#include "engine/graph_break/policy.h"

namespace faultline {

BreakPolicy BreakPolicy::parameters(std::vector<std::string> names) {
  BreakPolicy policy;
  policy.kind_ = Kind::Parameters;
  policy.names_ = std::move(names);
  return policy;
}

Result<BreakPolicy> readParameters(const std::vector<std::string>& words) {
  return BreakPolicy::parameters(words);
}

Result<Wishes> wishesParameters(const GraphFacts& facts, const BreakPolicy& policy) {
  const std::vector<ParameterUse> all = parameterUses(facts);
  std::vector<ParameterUse> wanted = policy.names().empty() ? all : std::vector<ParameterUse>{};
  for (const std::string& name : policy.names()) {
    const ParameterUse* found = findParameter(all, name);
    if (!found) {
      return unknownParameter(all, name);
    }
    wanted.push_back(*found);
  }
  Wishes wishes;
  std::map<size_t, std::vector<std::string>> by_op;
  for (const ParameterUse& parameter : wanted) {
    if (parameter.first == SIZE_MAX) {
      wishes.refused.push_back(refusedCut(BreakReason::no_gradient, parameter.name, parameter.name));
      continue;
    }
    auto& names = by_op[parameter.first];
    if (std::find(names.begin(), names.end(), parameter.name) == names.end()) {
      names.push_back(parameter.name);
    }
  }
  for (const auto& [op, names] : by_op) {
    const bool wished = wishBefore(facts, op, fmt::format("gradient of {}", fmt::join(names, ", ")), wishes);
    // Of all parameters the first is where the program begins, and nobody asked for a cut there.
    if (!wished && !policy.names().empty()) {
      const std::string& name = facts.work.names.of(facts.work.nodes[op]);
      wishes.refused.push_back(refusedCut(BreakReason::nothing_before, name, name));
    }
    if (names.size() > 1) {
      const std::string& name = facts.work.names.of(facts.work.nodes[op]);
      wishes.refused.push_back(refusedCut(BreakReason::one_op, name, name));
    }
  }
  return wishes;
}

}  // namespace faultline
