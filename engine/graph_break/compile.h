// compile() with a switch for the test that derives formulas.def.
#pragma once
#include "faultline/graph_break.h"

namespace faultline {

// As compile(); `trust_formulas` compiles ops in spite of their rows in formulas.def.
Result<CompiledGraph> compileTrusting(std::shared_ptr<Graph> graph, const BreakPlan& plan,
                                      const CompileOptions& options, bool trust_formulas);

}  // namespace faultline
