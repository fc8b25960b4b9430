// Phases of two traces: what differs, how bad, and how much was compared.
#pragma once
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "oracles/compare/tolerance.h"
#include "oracles/trace.h"
#include "oracles/verdict.h"

namespace faultline {

// Counts comparisons and keeps the gravest difference: of several in one phase the one whose kind comes first
// in phases.cpp's order, so that a signature does not depend on which output is looked at first.
class Comparison {
 public:
  explicit Comparison(const NumericProfile& profile) : profile_(profile) {}

  const NumericProfile& profile() const { return profile_; }
  void at(std::string where) { where_ = std::move(where); }  // "run 2, backward0": begins messages
  void count(uint64_t comparisons = 1) { count_ += comparisons; }
  // ValueComparison::distance of numbers, far or not. The largest is kept.
  void apart(double distance) { distance_ = std::max(distance_, distance); }
  // `distance`: where it is one of numbers.
  void differ(FailureKind kind, std::string detail, const std::string& message,
              double distance = std::numeric_limits<double>::infinity());
  bool failed() const { return worst_.has_value(); }
  uint64_t comparisons() const { return count_; }

  // Fail, Pass, or Skip(`nothing`) when there was nothing to compare.
  Verdict verdict(const std::string& nothing = "nothing_to_compare") const;

 private:
  struct Difference {
    FailureKind kind;
    std::string detail, message;
  };
  NumericProfile profile_;
  std::string where_;
  uint64_t count_ = 0;
  std::optional<Difference> worst_;
  double distance_ = 0;
};

// The detail of value and grad failures where a number met a NaN or an infinity: never excused as rounding.
inline constexpr const char* kNonFinite = "nonfinite";

// Errors first. True when both sides ended without one.
bool compareOutcome(const PhaseTrace& expected, const PhaseTrace& got, Comparison& comparison);

enum class Aliases { Ignore, Compare };
void compareForward(const PhaseTrace& expected, const PhaseTrace& got, Aliases aliases,
                    Comparison& comparison);
void compareBackward(const PhaseTrace& expected, const PhaseTrace& got, Comparison& comparison);

// Phases from `first` on, outcomes included; stops behind the first phase with a difference.
void compareRun(const RunTrace& expected, const RunTrace& got, size_t run, size_t first, size_t last,
                Aliases aliases, Comparison& comparison);
inline constexpr size_t kAllPhases = SIZE_MAX;

// One tensor. `gradient` chooses tolerance and kinds.
void compareTensor(const TensorTrace& expected, const TensorTrace& got, bool gradient, FailureKind values,
                   Comparison& comparison);

// The outputs from which a backward starts.
bool sameRoots(const PhaseTrace& a, const PhaseTrace& b);
bool hasRoots(const PhaseTrace& forward);

}  // namespace faultline
