#include "generators/text/scanner.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace faultline {
namespace {

using testing::HasSubstr;

TEST(Scanner, CountsLinesAndColumnsFromItsStart) {
  Scanner scanner("ab\ncd", {10, 4});
  scanner.advance(1);
  EXPECT_EQ(scanner.where().line, 10u);
  EXPECT_EQ(scanner.where().column, 5u);
  scanner.advance(3);
  EXPECT_EQ(scanner.where().line, 11u);
  EXPECT_EQ(scanner.where().column, 2u);
  scanner.advance(100);
  EXPECT_TRUE(scanner.atEnd());
}

RC_GTEST_PROP(Scanner, DoublesSurvive, (uint64_t bits)) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  std::string text = writeDouble(value);
  double back = Scanner(text).number("a number").value();
  RC_ASSERT((std::isnan(value) ? std::isnan(back) : std::memcmp(&value, &back, sizeof value) == 0));
}

TEST(Scanner, DoublesAtTheEdges) {
  using limits = std::numeric_limits<double>;
  for (double value : {0.0, -0.0, limits::infinity(), -limits::infinity(), limits::max(),
                       limits::denorm_min(), 0.1, 1e300}) {
    std::string text = writeDouble(value);
    double back = Scanner(text).number("a number").value();
    EXPECT_EQ(back, value) << text;
    EXPECT_EQ(std::signbit(back), std::signbit(value)) << text;
  }
}

RC_GTEST_PROP(Scanner, QuotedStringsSurvive, (std::string value)) {
  std::string text = quote(value) + " more";
  Scanner scanner(text);
  RC_ASSERT(scanner.quoted().value() == value);
  RC_ASSERT(scanner.rest() == " more");
  RC_ASSERT(text.find('\n') == std::string::npos);
}

TEST(Scanner, NumbersOutOfRangeAreSaidToBe) {
  EXPECT_THAT(Scanner("99999999999999999999").integer("an integer").error().message,
              HasSubstr("an integer of 64 bits"));
  EXPECT_THAT(Scanner("1e999").number("a number").error().message, HasSubstr("in the range of a double"));
  EXPECT_THAT(Scanner("infinite").number("a number").error().message,
              HasSubstr("expected a number, got 'infinite'"));
  EXPECT_THAT(Scanner("\x01").number("a number").error().message, HasSubstr("got '\\x01'"));
}

}  // namespace
}  // namespace faultline
