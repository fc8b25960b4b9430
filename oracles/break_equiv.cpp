// A broken graph computes what the whole one does: in every run, outputs, gradients, mutated inputs and which
// tensors share storage. It is broken where the case asks for it by name, or says that it is not, and its
// buckets of gradients are c10d's where the case asks for these.
#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "faultline/ir.h"
#include "oracles/compare/phases.h"
#include "oracles/exec/prepare.h"
#include "oracles/hooks/buckets.h"
#include "oracles/oracles.h"

namespace faultline {
namespace {

// The name of a cut that was asked for and is neither there nor refused. Only of graphs whose ops keep their
// names when subgraphs are inlined.
std::string droppedCut(const Case& c, const Trace& lane) {
  std::istringstream words(c.plan.breaks);
  std::string word;
  if (lane.pieces.empty() || !(words >> word) || word != "after") return "";
  auto prepared = prepareCase(c);
  if (!prepared || NodeNames(*c.graph).all() != NodeNames(*prepared->graph).all()) return "";
  while (words >> word) {
    const bool refused = std::any_of(lane.refused_cuts.begin(), lane.refused_cuts.end(),
                                     [&](const std::string& text) { return text.rfind(word + ":", 0) == 0; });
    for (const PieceTrace& piece : lane.pieces) {
      const auto op = std::find(piece.ops.begin(), piece.ops.end(), word);
      if (op != piece.ops.end() && op + 1 != piece.ops.end() && !refused) return word;
    }
  }
  return "";
}

class BreakEquiv : public Oracle {
 public:
  Verdict judge(const Case& c, const Trace& reference, const Trace& lane) const override {
    if (reference.runs.empty()) return Verdict::skip("not_applicable");
    Comparison comparison(numericProfile(*c.graph));
    if (lane.runs.size() != reference.runs.size()) {
      comparison.differ(FailureKind::shape, "", "the lane did not run as often as the reference");
      return comparison.verdict();
    }
    if (const std::string dropped = droppedCut(c, lane); !dropped.empty()) {
      comparison.differ(FailureKind::hook_order, "dropped_cut",
                        fmt::format("no cut behind {}, and none is refused there", dropped));
      return comparison.verdict();
    }
    if (const std::string wrong = wrongBucket(c, lane); !wrong.empty()) {
      comparison.differ(FailureKind::hook_order, "wrong_bucket", wrong);
      return comparison.verdict();
    }
    bool any_forward = false;
    for (size_t k = 0; k < reference.runs.size() && !comparison.failed(); ++k) {
      any_forward = any_forward || !reference.runs[k].phases[0].error;
      compareRun(reference.runs[k], lane.runs[k], k, 0, kAllPhases, Aliases::Compare, comparison);
    }
    if (!comparison.failed() && !any_forward) return Verdict::skip("reference_throws");
    return comparison.verdict();
  }
};

}  // namespace

std::unique_ptr<Oracle> makeBreakEquiv(const OracleOptions&) { return std::make_unique<BreakEquiv>(); }

}  // namespace faultline
