// How the break lanes plan, so that tests can hand them a wrong planner.
#pragma once
#include <functional>
#include <memory>

#include "faultline/graph_break.h"
#include "oracles/lane.h"

namespace faultline {

using Planner = std::function<Result<BreakPlan>(const Graph&, const BreakPolicy&)>;

std::unique_ptr<Lane> makeBrokenLane(Planner planner);

}  // namespace faultline
