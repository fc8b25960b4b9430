// What is to be done to a case's graph: cuts, hooks.
#pragma once
#include "generators/case/case.h"
#include "generators/generate/swarm.h"

namespace faultline {

// Names and positions fit the graph as it stands, which must be final.
void choosePlan(Case& c, Choices& choices, const Swarm& swarm);

}  // namespace faultline
