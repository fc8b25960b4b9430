// What is right in run 1 stays right: each later run equals the reference's same run, whatever was flipped. A
// lane whose first run is wrong already is not judged here: forward_equiv and gradient_equiv have it.
#include "oracles/compare/phases.h"
#include "oracles/oracles.h"

namespace faultline {
namespace {

class RunEquiv : public Oracle {
 public:
  Verdict judge(const Case& c, const Trace& reference, const Trace& lane) const override {
    if (reference.runs.size() < 2) return Verdict::skip("not_applicable");
    if (reference.runs[0].phases[0].error) return Verdict::skip("reference_throws");
    Comparison comparison(numericProfile(*c.graph));
    if (lane.runs.size() != reference.runs.size()) {
      comparison.differ(FailureKind::shape, "", "the lane did not run as often as the reference");
      return comparison.verdict();
    }
    Comparison first(comparison.profile());
    compareRun(reference.runs[0], lane.runs[0], 0, 0, kAllPhases, Aliases::Ignore, first);
    if (first.failed()) return Verdict::skip("first_run_differs");
    for (size_t k = 1; k < reference.runs.size() && !comparison.failed(); ++k) {
      compareRun(reference.runs[k], lane.runs[k], k, 0, kAllPhases, Aliases::Ignore, comparison);
    }
    return comparison.verdict();
  }
};

}  // namespace

std::unique_ptr<Oracle> makeRunEquiv(const OracleOptions&) { return std::make_unique<RunEquiv>(); }

}  // namespace faultline
