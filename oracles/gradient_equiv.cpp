// Gradients of run 1: from all outputs, from each alone, twice. Undefined and zero are kept apart.
#include "oracles/compare/phases.h"
#include "oracles/oracles.h"

namespace faultline {
namespace {

class GradientEquiv : public Oracle {
 public:
  Verdict judge(const Case& c, const Trace& reference, const Trace& lane) const override {
    if (reference.runs.empty() || reference.runs[0].phases.size() < 2 ||
        !hasRoots(reference.runs[0].phases[0])) {
      return Verdict::skip("not_applicable");
    }
    const RunTrace& expected = reference.runs[0];
    // Another forward makes other gradients; forward_equiv says so.
    if (lane.runs.empty() || lane.runs[0].phases.empty() || lane.runs[0].phases[0].error) {
      return Verdict::skip("forward_throws");
    }
    if (!sameRoots(expected.phases[0], lane.runs[0].phases[0])) return Verdict::skip("forward_differs");
    Comparison comparison(numericProfile(*c.graph));
    compareRun(expected, lane.runs[0], 0, 1, kAllPhases, Aliases::Ignore, comparison);
    return comparison.verdict();
  }
};

}  // namespace

std::unique_ptr<Oracle> makeGradientEquiv(const OracleOptions&) { return std::make_unique<GradientEquiv>(); }

}  // namespace faultline
