#include "generators/ops/range.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/support/check.h"
#include "generators/ops/limits.h"

namespace faultline {

namespace {

constexpr int wild = 40;  // past every limit

int halfUp(int x) { return x >= 0 ? (x + 1) / 2 : -(-x / 2); }
int halfDown(int x) { return x >= 0 ? x / 2 : -((-x + 1) / 2); }

// A number that is added or a factor of -1 may turn any sign, so none is claimed.
Range sumRange(const Range& all) { return Range::any(std::max(all.magnitude, 2) + 1); }

Range totalRange(const Range& a, int bits) {
  Range total = a;
  total.magnitude += bits;
  if (total.isPositive() && bits == 0) total.sign = Range::Sign::NonNegative;  // of no elements: 0
  return total;
}

Range productRange(const Range& a, const Range& b) {
  int magnitude = a.magnitude + b.magnitude;
  if (a.isPositive() && b.isPositive()) return Range::positive(a.floor + b.floor, magnitude);
  bool signed_ = a.sign == Range::Sign::Any || b.sign == Range::Sign::Any;
  return signed_ ? Range::any(magnitude) : Range::nonNegative(magnitude);
}

Range quotientRange(const Range& a, const Range& b) {
  if (!b.isPositive()) return Range::any(wild);
  int magnitude = a.magnitude - b.floor;
  if (a.isPositive()) return Range::positive(a.floor - b.magnitude, magnitude);
  return a.sign == Range::Sign::Any ? Range::any(magnitude) : Range::nonNegative(magnitude);
}

Range expRange(const Range& a) {
  if (a.magnitude > limits::small_magnitude) return Range::nonNegative(wild);
  int bits = a.magnitude <= 0 ? 2 : 3 << (a.magnitude - 1);  // 1.44 * 2^magnitude, rounded up
  return Range::positive(-bits, bits);
}

Range powRange(const Range& a, const Range& b) {
  if (!a.isPositive() || b.magnitude > limits::small_magnitude) return Range::any(wild);
  int reach = std::max(a.magnitude, -a.floor) << std::max(b.magnitude, 0);
  return Range::positive(-reach, reach);
}

}  // namespace

Range joinRanges(const Range& a, const Range& b) {
  Range joined;
  joined.magnitude = std::max(a.magnitude, b.magnitude);
  joined.sign = std::min(a.sign, b.sign);
  joined.floor = joined.isPositive() ? std::min(a.floor, b.floor) : 0;
  return joined;
}

const std::vector<RangeRule>& rangeRules() {
  static const std::vector<RangeRule> rules = {
#define FAULTLINE_RANGE_RULE(name, help, expression) {#name, help},
#include "generators/ops/range.def"
#undef FAULTLINE_RANGE_RULE
  };
  return rules;
}

Range resultRange(std::string_view rule, const std::vector<Range>& operands, size_t elements) {
  Range a = operands.empty() ? Range() : operands[0];
  Range b = operands.size() > 1 ? operands[1] : a;
  Range c = operands.size() > 2 ? operands[2] : a;
  Range all = a;
  for (const Range& operand : operands) all = joinRanges(all, operand);
  int bits = 0;
  while (elements >> bits != 0) ++bits;
#define FAULTLINE_RANGE_RULE(name, help, expression) \
  if (rule == #name) return expression;
#include "generators/ops/range.def"
#undef FAULTLINE_RANGE_RULE
  FAULTLINE_CHECK(false, fmt::format("unknown result rule '{}'", rule));
}

}  // namespace faultline
