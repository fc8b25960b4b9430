// A broken graph computes what the whole one does: in every run, outputs, gradients, mutated inputs and which
// tensors share storage.
#include "oracles/compare/phases.h"
#include "oracles/oracles.h"

namespace faultline {
namespace {

class BreakEquiv : public Oracle {
 public:
  Verdict judge(const Case& c, const Trace& reference, const Trace& lane) const override {
    if (reference.runs.empty()) return Verdict::skip("not_applicable");
    Comparison comparison(numericProfile(*c.graph));
    if (lane.runs.size() != reference.runs.size()) {
      comparison.differ(FailureKind::shape, "", "the lane did not run as often as the reference");
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
