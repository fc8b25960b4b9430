// What people and programs see of a plan, of what was compiled from it, and of a run.
#pragma once
#include "faultline/graph_break.h"
#include "fuzz/cli/break_run.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"

namespace faultline::cli {

// `summary`: of long lists how they begin and end, and no event alone.
void printPlan(const Console& console, const BreakPlan& plan, bool summary);
// A line per piece.
void printCompiledPieces(const Console& console, const CompiledGraph& compiled);
// The original, each piece and the stitched graph as tables, each with what became of it.
void printCompiled(const Console& console, const torch::jit::Graph& original, const BreakPlan& plan,
                   const CompiledGraph& compiled);
void printRun(const Console& console, const BreakRun& run, bool summary);

Json planJson(const BreakPlan& plan);                                // "faultline.break/1", pieces as planned
void describeCompiled(const CompiledGraph& compiled, Json& result);  // corrects kind and reason of the pieces
void describeRun(const BreakRun& run, Json& result);                 // adds "events" and "run"

}  // namespace faultline::cli
