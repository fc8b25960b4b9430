// Puts prim::profile nodes into a graph as a profiling run would leave them, and then spoils some.
#pragma once
#include <string>

#include "generators/case/case.h"
#include "generators/choices/choices.h"

namespace faultline {

enum class ProfileTruth {
  True,        // what profiling some of the case's runs would have recorded, at some of the places
  Unseen,      // … and some nodes as if they had never run
  Conflicting  // … and some that contradict the tensors or each other
};
const char* toString(ProfileTruth truth);

// Changes c.graph: nodes before uses, in blocks and subgraphs. Executes the runs it takes as profiled.
ProfileTruth insertProfileNodes(Case& c, Choices& choices);

}  // namespace faultline
