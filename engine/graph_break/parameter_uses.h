// Graph inputs that get a gradient: where it becomes whole, and what it weighs.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/graph_break/parts.h"

namespace faultline {

struct ParameterUse {
  size_t input = 0;  // position among the graph's inputs
  std::string name;
  // The first top-level node that a gradient comes back to it from, which is the last to give its share;
  // SIZE_MAX: none does.
  size_t first = SIZE_MAX;
  size_t operand = 0;
  std::optional<int64_t> bytes;  // unknown where its type is not complete
  c10::optional<at::ScalarType> dtype;
  c10::optional<c10::Device> device;
};

// Tensor inputs that require grad as far as their types say, in order. A gradient comes back from a use when
// results of the graph, or what it writes, depend on it.
std::vector<ParameterUse> parameterUses(const GraphFacts& facts);

// Those that a gradient comes back to, in the order it becomes ready: by first use from the end of the graph,
// of one op by operand from the last.
std::vector<ParameterUse> inReadyOrder(std::vector<ParameterUse> uses);

// The one called `name`; nullptr: none is.
const ParameterUse* findParameter(const std::vector<ParameterUse>& uses, const std::string& name);
tl::unexpected<Error> unknownParameter(const std::vector<ParameterUse>& uses, const std::string& name);

}  // namespace faultline
