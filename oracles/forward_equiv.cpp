// Outputs, exceptions, strides, dtype, requires_grad, is_leaf and mutated inputs of run 1 equal the
// reference's. Later runs are run_equiv's and break_equiv's, so that one cause is reported once.
#include "oracles/compare/phases.h"
#include "oracles/oracles.h"

namespace faultline {
namespace {

class ForwardEquiv : public Oracle {
 public:
  Verdict judge(const Case& c, const Trace& reference, const Trace& lane) const override {
    if (reference.runs.empty()) return Verdict::skip("not_applicable");
    Comparison comparison(numericProfile(*c.graph));
    if (lane.runs.empty()) {
      comparison.differ(FailureKind::shape, "", "the lane ran nothing");
      return comparison.verdict();
    }
    compareRun(reference.runs[0], lane.runs[0], 0, 0, 1, Aliases::Ignore, comparison);
    // The case is not one: both threw alike, and there is nothing else to compare.
    if (!comparison.failed() && reference.runs[0].phases[0].error) return Verdict::skip("reference_throws");
    return comparison.verdict();
  }
};

}  // namespace

std::unique_ptr<Oracle> makeForwardEquiv(const OracleOptions&) { return std::make_unique<ForwardEquiv>(); }

}  // namespace faultline
