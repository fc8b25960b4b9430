// The outcome of one oracle on one lane. A Pass with no comparison behind it cannot be built.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace faultline {

// kinds.def: the closed list of what can be wrong.
enum class FailureKind {
#define FAULTLINE_KIND(name, help) name,
#include "oracles/kinds.def"
#undef FAULTLINE_KIND
};
const char* toString(FailureKind kind);

class [[nodiscard]] Verdict {
 public:
  enum class Outcome { Pass, Skip, Fail };

  // Aborts when comparisons == 0. `distance`: how far apart numbers were at most.
  static Verdict pass(uint64_t comparisons, uint64_t rounding = 0, double distance = 0);
  static Verdict skip(std::string reason);
  // `detail` is the last part of the signature, may be empty; `message` is for people: where, expected, got.
  // `distance`: the same, where that is all that failed.
  static Verdict failure(FailureKind kind, std::string detail, std::string message, uint64_t comparisons,
                         double distance = std::numeric_limits<double>::infinity());

  Outcome outcome() const { return outcome_; }
  bool passed() const { return outcome_ == Outcome::Pass; }
  bool failed() const { return outcome_ == Outcome::Fail; }
  bool skipped() const { return outcome_ == Outcome::Skip; }
  // False for skips that say that the case is none for this oracle or lane: not_applicable, plan_unsupported,
  // plan_refused.
  bool applicable() const;
  const std::string& reason() const { return reason_; }
  FailureKind kind() const { return kind_; }
  const std::string& detail() const { return detail_; }
  const std::string& message() const { return message_; }
  uint64_t comparisons() const { return comparisons_; }
  uint64_t rounding() const { return rounding_; }  // mismatches that another precision explained
  double distance() const { return distance_; }

  // "oracle/lane-group/kind[/detail]": stable under reduction, equal on all versions and machines.
  std::string signature(std::string_view oracle, std::string_view lane_group) const;

 private:
  Outcome outcome_ = Outcome::Skip;
  std::string reason_, detail_, message_;
  FailureKind kind_ = FailureKind::value;
  uint64_t comparisons_ = 0, rounding_ = 0;
  double distance_ = 0;
};

}  // namespace faultline
