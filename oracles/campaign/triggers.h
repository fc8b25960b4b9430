// Structural predicates on graphs: what must be there for a known issue to show. A signature alone would
// excuse failures of another cause.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

struct Trigger {
  std::string name, help;
  bool (*holds)(const torch::jit::Graph& graph);
};

const std::vector<Trigger>& triggers();
const Trigger* findTrigger(std::string_view name);

}  // namespace faultline
