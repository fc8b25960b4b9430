#include "oracles/judge.h"

#include <algorithm>
#include <cmath>

#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>

#include "engine/support/check.h"
#include "faultline/ir.h"
#include "oracles/compare/phases.h"
#include "oracles/exec/errors.h"
#include "oracles/exec/execute.h"
#include "oracles/lane.h"
#include "oracles/nan_kernels.h"
#include "oracles/precision.h"

namespace faultline {
namespace {

// While one lives, phases of this thread are reported as steps of a lane.
class StepReports {
 public:
  StepReports(const JudgeOptions& options, std::string lane) {
    if (!options.step) return;
    before_ = setStepObserver([step = options.step, lane = std::move(lane)](
                                  int run, const std::string& phase) { step(lane, run, phase); });
    active_ = true;
  }
  ~StepReports() {
    if (active_) setStepObserver(std::move(before_));
  }
  StepReports(const StepReports&) = delete;
  StepReports& operator=(const StepReports&) = delete;

 private:
  StepObserver before_;
  bool active_ = false;
};

class DefaultDtype {
 public:
  explicit DefaultDtype(at::ScalarType dtype) : before_(c10::get_default_dtype()) {
    c10::set_default_dtype(c10::scalarTypeToTypeMeta(dtype));
  }
  ~DefaultDtype() { c10::set_default_dtype(before_); }
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  caffe2::TypeMeta before_;
};

Trace runLane(const LaneInfo& lane, const Case& c, const JudgeOptions& options) {
  // Before the first phase: a lane may die while it prepares its graph.
  if (options.step) options.step(lane.name, 0, "prepare");
  const StepReports reports(options, lane.name);
  const std::unique_ptr<Lane> made = lane.make();
  if (made == nullptr) {
    Trace trace;
    trace.lane = lane.name;
    trace.skip = "lane_unavailable";
    return trace;
  }
  return made->execute(c, c.seed);
}

const LaneInfo& referenceLane() {
  const LaneInfo* lane = findLane("reference");
  FAULTLINE_CHECK(lane != nullptr, "there is no reference lane");
  return *lane;
}

// Whether another precision may explain the failure: numbers against numbers, nothing else.
bool mayBeRounding(const Verdict& verdict) {
  const bool numbers = verdict.failed() &&
                       (verdict.kind() == FailureKind::value || verdict.kind() == FailureKind::grad ||
                        verdict.kind() == FailureKind::mutation || verdict.kind() == FailureKind::hook_arg);
  return numbers && verdict.detail() != kNonFinite;
}

// What is wrong is as wrong in every precision; what was rounded shrinks as numbers get longer: from float32
// to float64 by 2e-9. In between lies room for errors that float32 cuts off because nothing is left of the
// number.
constexpr double kShrinks = 1e-4;

bool shrank(const Verdict& coarse, const Verdict& fine) {
  return (coarse.passed() || mayBeRounding(coarse)) && mayBeRounding(fine) &&
         std::isfinite(coarse.distance()) && fine.distance() <= kShrinks * coarse.distance();
}

// Traces of one case in another precision, made when first asked for. `draw`: other inputs for each.
class InPrecision {
 public:
  InPrecision(const Case& c, const JudgeOptions& options, Result<Case> (*change)(const Case&),
              at::ScalarType default_dtype, uint64_t draw = 0)
      : original_(c), options_(options), change_(change), default_dtype_(default_dtype), draw_(draw) {}

  // The verdict of `oracle` there; a skip where the case has nothing of another precision.
  Verdict judge(const Oracle& oracle, const LaneInfo& lane) {
    if (!changed_) changed_ = change_(original_);
    if (!*changed_) return Verdict::skip("not_changed");
    (*changed_)->seed = original_.seed + draw_;
    const DefaultDtype dtype(default_dtype_);
    if (!reference_) reference_ = runLane(referenceLane(), **changed_, options_);
    const auto trace = lanes_.find(lane.name) != lanes_.end()
                           ? lanes_.find(lane.name)
                           : lanes_.emplace(lane.name, runLane(lane, **changed_, options_)).first;
    if (!reference_->skip.empty() || !trace->second.skip.empty()) return Verdict::skip("not_changed");
    return oracle.judge(**changed_, *reference_, trace->second);
  }

 private:
  const Case& original_;
  const JudgeOptions& options_;
  Result<Case> (*change_)(const Case&);
  at::ScalarType default_dtype_;
  uint64_t draw_;
  std::optional<Result<Case>> changed_;
  std::optional<Trace> reference_;
  std::map<std::string, Trace> lanes_;
};

// Tells rounding from wrong numbers: it is gone in float64, or far smaller there; what float64 itself rounded
// is far larger in float32.
class OtherPrecisions {
 public:
  OtherPrecisions(const Case& c, const JudgeOptions& options) : wide_(c, options, toFloat64, at::kDouble) {
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      narrow_.emplace_back(c, options, toFloat32, at::kFloat, draw);
    }
  }

  // Makes a pass of a failure that is rounding.
  void confirm(const Oracle& oracle, const LaneInfo& lane, Verdict& verdict) {
    if (!mayBeRounding(verdict)) return;
    const Verdict wide = wide_.judge(oracle, lane);
    if (wide.passed() || shrank(verdict, wide)) {
      verdict = Verdict::pass(wide.comparisons(), 1);
    } else if (verdict.distance() <= kShrinks &&
               std::any_of(narrow_.begin(), narrow_.end(),
                           [&](InPrecision& one) { return shrank(one.judge(oracle, lane), verdict); })) {
      verdict = Verdict::pass(verdict.comparisons(), 1);
    }
  }

 private:
  // With one draw two sums that cancel may be equal by chance.
  static constexpr uint64_t kDraws = 4;
  InPrecision wide_;
  std::vector<InPrecision> narrow_;
};

// Whether eager's own gradients depend on where in memory a NaN stands. Found out when first asked for.
class NanKernels {
 public:
  NanKernels(const Case& c, const JudgeOptions& options) : case_(c), options_(options) {}

  bool explain(const Verdict& verdict) {
    if (!verdict.failed() ||
        (verdict.kind() != FailureKind::grad && verdict.kind() != FailureKind::hook_arg)) {
      return false;
    }
    if (!met_) {
      const NanNotice notice;
      runLane(referenceLane(), noticingNan(case_), options_);
      met_ = notice.seen();
    }
    return *met_;
  }

 private:
  const Case& case_;
  const JudgeOptions& options_;
  std::optional<bool> met_;
};

bool sameErrors(const Trace& a, const Trace& b) {
  auto phases = [](const Trace& t) {
    size_t n = 0;
    for (const RunTrace& run : t.runs) n += run.phases.size();
    return n;
  };
  return phases(a) == phases(b);
}

// The reference against itself. Within the tolerances: alignment of memory may move a last bit.
bool agrees(const Case& c, const Trace& a, const Trace& b) {
  Comparison comparison(numericProfile(*c.graph));
  if (a.runs.size() != b.runs.size() || !sameErrors(a, b)) return false;
  for (size_t k = 0; k < a.runs.size(); ++k) {
    compareRun(a.runs[k], b.runs[k], k, 0, kAllPhases, Aliases::Compare, comparison);
  }
  return !comparison.failed();
}

Judgement judgementOf(const OracleInfo& oracle, const LaneInfo& lane, Verdict verdict) {
  Judgement judgement{oracle.name, lane.name, lane.group, std::move(verdict), {}};
  if (judgement.verdict.failed()) judgement.signature = judgement.verdict.signature(oracle.name, lane.group);
  return judgement;
}

std::string firstError(const Trace& trace) {
  for (size_t i = 0; i < trace.runs.size(); ++i) {
    for (const PhaseTrace& phase : trace.runs[i].phases) {
      if (phase.error) {
        return fmt::format("run {}, {}: {}", i + 1, phase.name(), decisiveLine(phase.error->text));
      }
    }
  }
  return {};
}

}  // namespace

bool CaseResult::failed() const {
  return std::any_of(judgements.begin(), judgements.end(),
                     [](const Judgement& j) { return j.verdict.failed(); });
}

CaseResult judgeCase(const Case& c, const JudgeOptions& options) {
  CaseResult result;
  // The interpreter takes what verifies; anything else may end the process.
  if (!verifyGraph(*c.graph)) {
    result.skip = "invalid_graph";
    return result;
  }
  if (c.runs.empty()) {
    result.skip = "no_runs";
    return result;
  }
  const LaneInfo& reference_lane = referenceLane();
  const Trace reference = runLane(reference_lane, c, options);
  result.lane_seconds.emplace_back(reference_lane.name, reference.seconds);
  if (!reference.skip.empty()) {
    result.skip = reference.skip;
    return result;
  }
  if (!agrees(c, reference, runLane(reference_lane, c, options))) {
    result.skip = "reference_nondeterministic";
    return result;
  }
  result.reference_error = firstError(reference);
  const bool throws = reference.runs[0].phases[0].error.has_value();
  OtherPrecisions precisions(c, options);
  NanKernels nan_kernels(c, options);
  for (const std::string& name : options.lanes) {
    const LaneInfo* lane = findLane(name);
    FAULTLINE_CHECK(lane != nullptr, "no lane is called " + name);
    if (lane->group == reference_lane.group) continue;
    const Trace trace = runLane(*lane, c, options);
    result.lane_seconds.emplace_back(name, trace.seconds);
    if (options.observe) options.observe(trace);
    result.shares.insert(result.shares.end(), trace.shares.begin(), trace.shares.end());
    for (const OracleInfo& info : allOracles()) {
      const bool wanted = options.oracles.empty() || std::find(options.oracles.begin(), options.oracles.end(),
                                                               info.name) != options.oracles.end();
      if (!wanted || !info.judges(lane->name, lane->group)) continue;
      if (!trace.skip.empty()) {
        result.judgements.push_back(judgementOf(info, *lane, Verdict::skip(trace.skip)));
        continue;
      }
      const std::unique_ptr<Oracle> oracle = info.make(options.oracle);
      Verdict verdict = oracle->judge(c, reference, trace);
      if (options.confirm_in_other_precision) precisions.confirm(*oracle, *lane, verdict);
      if (nan_kernels.explain(verdict)) verdict = Verdict::skip("kernel_of_nan");
      result.judgements.push_back(judgementOf(info, *lane, std::move(verdict)));
    }
  }
  // A program that cannot run is no case, unless a lane runs it all the same.
  if (throws && !result.failed()) {
    result.skip = "reference_throws";
    result.judgements.clear();
  }
  return result;
}

}  // namespace faultline
