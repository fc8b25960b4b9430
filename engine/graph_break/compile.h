// compile() in other ways: with a switch for the test that derives formulas.def, and with what profiles say.
#pragma once
#include "engine/runtime/runnable_part.h"
#include "faultline/apply_profile.h"
#include "faultline/graph_break.h"

namespace faultline {

// As compile(); `trust_formulas` compiles ops in spite of their rows in formulas.def.
Result<CompiledGraph> compileTrusting(std::shared_ptr<Graph> graph, const BreakPlan& plan,
                                      const CompileOptions& options, bool trust_formulas);

struct KnownGradient {
  std::optional<bool> requires_grad;
  std::string why;               // it is not known
  std::optional<int64_t> bytes;  // the size of the tensor, where that is known
};
// Per node of the working copy, those in blocks too, in the order of their names; and operand.
using KnownGradients = std::vector<std::vector<KnownGradient>>;

struct Specialisation {
  const KnownGradients& known;
  Guard guard;
};

// Each part is differentiated once, for what is known of its inputs. Aborts when `known` is of another graph.
Result<CompiledGraph> compileSpecialised(std::shared_ptr<Graph> graph, const BreakPlan& plan,
                                         const Specialisation& specialisation, ApplyReport& report);

}  // namespace faultline
