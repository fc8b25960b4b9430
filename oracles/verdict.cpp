#include "oracles/verdict.h"

#include "engine/support/check.h"

namespace faultline {

const char* toString(FailureKind kind) {
  switch (kind) {
#define FAULTLINE_KIND(name, help) \
  case FailureKind::name:          \
    return #name;
#include "oracles/kinds.def"
#undef FAULTLINE_KIND
  }
  FAULTLINE_CHECK(false, "no such failure kind");
}

Verdict Verdict::pass(uint64_t comparisons, uint64_t rounding, double distance) {
  FAULTLINE_CHECK(comparisons > 0, "a pass without a comparison");
  Verdict v;
  v.outcome_ = Outcome::Pass;
  v.comparisons_ = comparisons;
  v.rounding_ = rounding;
  v.distance_ = distance;
  return v;
}

Verdict Verdict::skip(std::string reason) {
  FAULTLINE_CHECK(!reason.empty(), "a skip without a reason");
  Verdict v;
  v.outcome_ = Outcome::Skip;
  v.reason_ = std::move(reason);
  return v;
}

Verdict Verdict::failure(FailureKind kind, std::string detail, std::string message, uint64_t comparisons,
                         double distance) {
  Verdict v;
  v.outcome_ = Outcome::Fail;
  v.kind_ = kind;
  v.detail_ = std::move(detail);
  v.message_ = std::move(message);
  v.comparisons_ = comparisons;
  v.distance_ = distance;
  return v;
}

bool Verdict::applicable() const {
  return !skipped() ||
         (reason_ != "not_applicable" && reason_ != "plan_unsupported" && reason_ != "plan_refused");
}

std::string Verdict::signature(std::string_view oracle, std::string_view lane_group) const {
  FAULTLINE_CHECK(failed(), "only a failure has a signature");
  std::string text;
  text.append(oracle).append("/").append(lane_group).append("/").append(toString(kind_));
  if (!detail_.empty()) text.append("/").append(detail_);
  return text;
}

}  // namespace faultline
