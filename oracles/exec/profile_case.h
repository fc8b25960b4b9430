// The graph of a case as lanes profile it: subgraphs in place, seams in it, its own profile nodes apart.
#pragma once
#include <memory>

#include "faultline/recorder.h"
#include "oracles/exec/prepare.h"
#include "oracles/exec/profile_passes.h"
#include "oracles/profile_trace.h"

namespace faultline {

struct ProfiledCase {
  std::shared_ptr<Graph> plain;  // without profile nodes
  std::shared_ptr<Graph> kept;   // with the case's own; nullptr: the plan does not keep any
};
ProfiledCase profiledCase(const Case& c, const PreparedCase& prepared);

// The graph with nodes made of a recording of it, some of them left out again: which ones, and how many,
// follows from the seed.
std::shared_ptr<Graph> withSomeProfileNodes(const Graph& plain, const Recording& recording, uint64_t seed);

// Everything that profile_laws judges but for what arrives in runs. `graph` has profile nodes and ends as
// propagated; `removed` gets what removal leaves of it. Uses stand in the order of profileSites(plain).
ProfileTrace traceProfile(const std::shared_ptr<Graph>& graph, const ProfilePasses& passes,
                          std::shared_ptr<Graph>& removed);

// Fills in what arrived: `recordings` of graphs with the same uses, runs in order.
void addSeen(ProfileTrace& trace, const std::vector<Recording>& recordings);

}  // namespace faultline
