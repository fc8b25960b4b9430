// How large a value can be, from the ops that made it alone: the generator never looks at values, but an exp
// of an exp is inf for anybody. Whole powers of two, so that every compiler and CPU agrees.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

struct Range {
  enum class Sign { Any, NonNegative, Positive };
  int magnitude = 2;  // |x| < 2^magnitude, nearly always
  Sign sign = Sign::Any;
  int floor = 0;  // Positive: x >= 2^floor
  bool operator==(const Range&) const = default;

  static Range any(int magnitude) { return {magnitude, Sign::Any, 0}; }
  static Range nonNegative(int magnitude) { return {magnitude, Sign::NonNegative, 0}; }
  static Range positive(int floor, int magnitude) { return {magnitude, Sign::Positive, floor}; }
  bool isPositive() const { return sign == Sign::Positive; }
};

// What holds for a value that comes from one or the other.
Range joinRanges(const Range& a, const Range& b);

// The range of a row's result from its tensor operands' (in schema order; lists flattened). `elements`: of
// the first operand. `rule` is a word of range.def; aborts on another.
Range resultRange(std::string_view rule, const std::vector<Range>& operands, size_t elements);

struct RangeRule {
  std::string name, help;
};
const std::vector<RangeRule>& rangeRules();  // range.def

}  // namespace faultline
