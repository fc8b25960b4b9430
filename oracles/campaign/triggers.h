// Structural predicates on cases: what must be there, in the graph, the descriptions of the inputs or the
// modes of the callers, for a known issue to show. A signature alone would excuse failures of another cause.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "generators/case/case.h"

namespace faultline {

struct Trigger {
  std::string name, help;
  bool (*holds)(const Case& c);
};

const std::vector<Trigger>& triggers();
const Trigger* findTrigger(std::string_view name);

}  // namespace faultline
