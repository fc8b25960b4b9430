// The graph of a case as lanes run it: subgraphs inlined, profile nodes stripped, and the plan in terms of
// it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "faultline/graph_break.h"
#include "generators/case/case.h"
#include "oracles/exec/seam_op.h"

namespace faultline {

struct PreparedCase {
  std::shared_ptr<torch::jit::Graph> graph;  // a copy
  std::vector<HookSpec> input_hooks;
  std::vector<SeamHook> seam_hooks;  // producers are nodes of `graph`
};

// Refuses (Unsupported) a hook on a value or input that the case does not have.
Result<PreparedCase> prepareCase(const Case& c);

// The plan's breaks, names translated from the case's graph to `prepared` (inlining may renumber ops).
// Refuses with Unsupported a policy that nothing acts on yet.
Result<BreakPolicy> readBreakPolicy(const Case& c, const PreparedCase& prepared);

// Whether a directive of the plan has no actor yet: passes, several ranks.
bool planIsSupported(const Plan& plan);

// Our own, and not the engine's, since the engine's is under test. Changes the graph; subgraphs are not
// entered.
void stripProfileNodes(torch::jit::Graph& graph);

// Types as the case's runs promise them, for compilers that believe types: inputs get the type that all runs
// agree on; where runs differ, the types of all other tensors are forgotten too. Changes the graph.
void settleTypes(torch::jit::Graph& graph, const std::vector<CaseRun>& runs);

}  // namespace faultline
