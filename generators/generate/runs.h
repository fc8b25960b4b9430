// The runs of a case: each differs from the first in what the graph is found to bear.
#pragma once
#include "generators/case/case.h"
#include "generators/generate/swarm.h"

namespace faultline {

// Replaces `c.runs`, which holds the run the graph was built on, by one to four. Every run is executed in the
// interpreter; a difference that makes it throw is taken back. False: even the run it was built on throws.
bool chooseRuns(Case& c, Choices& choices, const Swarm& swarm);

}  // namespace faultline
