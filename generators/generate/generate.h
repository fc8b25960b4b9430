// Random cases, built by executing: the real tensors are kept at hand while nodes are added, so that each
// op's operands are known to fit. Looks at metadata and at "ran or threw", never at values.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "generators/case/case.h"
#include "generators/choices/choices.h"

namespace faultline {

// An op about to be executed by the generator.
struct PendingOp {
  const std::string& op;  // row name
  const Tape& tape;       // of the choices so far
  // The case so far with the op's node appended but not executed (its results untyped, the values at hand
  // returned): what to save when executing it kills the process. Costs a copy of the graph, so it is only
  // made when called.
  std::function<Case()> case_with_op;
};

struct GenerateOptions {
  std::vector<std::string> ops_added;    // --ops +a: these rows always take part
  std::vector<std::string> ops_removed;  // --ops -a: never
  std::vector<std::string> features;     // empty: a random subset per case (swarm); else "+x"/"-x" pins
  // Nodes without constants. At least: unless a tape runs out or ends the program, or all ops are removed. At
  // most: an aim, a block or chain that was begun is finished.
  size_t min_nodes = 8;
  size_t max_nodes = 40;
  // Called before each op is executed: the flight recorder's window. May be empty. An exception that it
  // throws leaves generateCase (a worker that only wants the n-th pending op stops there).
  std::function<void(const PendingOp&)> before_op;
};

// Always gives a valid case: it verifies, and its reference run does not throw. `seed` becomes Case::seed.
Case generateCase(Choices& choices, uint64_t seed, const GenerateOptions& options = {});

// Refuses names of ops and features that do not exist, with the nearest that does; generateCase aborts on
// them.
Result<void> validateGenerateOptions(const GenerateOptions& options);

// Seed of case `index` of a run seeded with `seed`, whatever the number of jobs.
uint64_t caseSeed(uint64_t seed, uint64_t index);

struct GeneratorFeature {
  std::string name, help;
  uint32_t percent = 0;  // of cases that have it unless it is pinned
};
const std::vector<GeneratorFeature>& generatorFeatures();

// What a case has in it, for `shares` and for coverage tests: "differentiable", "control_flow", "mutation",
// "view", "subgraph", "flips", "op:aten::mul.Tensor", …
std::set<std::string> caseTraits(const Case& c);

}  // namespace faultline
