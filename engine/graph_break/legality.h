// What stands in the way of any cut in a graph, as this version knows it.
#pragma once
#include <optional>
#include <string>

#include "engine/graph_break/break_reasons.h"
#include "engine/graph_break/working_copy.h"

namespace faultline {

struct Obstacle {
  BreakReason reason;
  std::string op;  // its name
};

// The first node, blocks included, that makes cuts illegal wherever they are; none: every cut between
// top-level nodes is legal, because without writes no reader can see a difference.
std::optional<Obstacle> findObstacle(const WorkingCopy& work);

}  // namespace faultline
