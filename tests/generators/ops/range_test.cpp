#include <gtest/gtest.h>

#include "generators/ops/range.h"
#include "generators/ops/rules.h"

namespace faultline {
namespace {

TEST(Range, JoinClaimsOnlyWhatHoldsForBoth) {
  EXPECT_EQ(joinRanges(Range::positive(-1, 1), Range::positive(-3, 0)), Range::positive(-3, 1));
  EXPECT_EQ(joinRanges(Range::positive(-1, 1), Range::nonNegative(4)), Range::nonNegative(4));
  EXPECT_EQ(joinRanges(Range::any(2), Range::positive(0, 5)), Range::any(5));
}

TEST(Range, ExponentialsOfExponentialsAreWild) {
  Range once = resultRange("exp", {Range::any(2)}, 4);
  EXPECT_TRUE(once.isPositive());
  EXPECT_LE(once.magnitude, 8);
  Range twice = resultRange("exp", {once}, 4);
  EXPECT_GE(twice.magnitude, 40);
}

TEST(Range, ProductsOfPositivesStayPositive) {
  EXPECT_EQ(resultRange("product", {Range::positive(-1, 1), Range::positive(-2, 3)}, 1),
            Range::positive(-3, 4));
  EXPECT_EQ(resultRange("product", {Range::positive(-1, 1), Range::any(3)}, 1), Range::any(4));
}

TEST(Range, DividingByWhatMayBeZeroIsWild) {
  EXPECT_GE(resultRange("quotient", {Range::any(2), Range::any(2)}, 1).magnitude, 40);
  EXPECT_EQ(resultRange("quotient", {Range::any(2), Range::positive(-1, 1)}, 1), Range::any(3));
  EXPECT_EQ(resultRange("inverse", {Range::positive(-1, 1)}, 1), Range::positive(-1, 1));
}

TEST(Range, SumsOfManyGrowWithTheirNumber) {
  EXPECT_EQ(resultRange("total", {Range::any(2)}, 12).magnitude, 6);
  EXPECT_EQ(resultRange("total", {Range::any(2)}, 1).magnitude, 3);
}

TEST(RangeDeathTest, AnUnknownRuleAborts) {
  EXPECT_DEATH(resultRange("no_such_rule", {}, 0), "no_such_rule");
}

TEST(Broadcast, FollowsPyTorchsRules) {
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(broadcastSizes(Sizes{2, 1, 3}, Sizes{4, 1}), (Sizes{2, 4, 3}));
  EXPECT_EQ(broadcastSizes(Sizes{}, Sizes{2, 0}), (Sizes{2, 0}));
  EXPECT_EQ(broadcastSizes(Sizes{1}, Sizes{0}), (Sizes{0}));
  EXPECT_EQ(broadcastSizes(Sizes{2, 3}, Sizes{2}), std::nullopt);
  EXPECT_TRUE(broadcastsTo(Sizes{1, 3}, Sizes{2, 3}));
  EXPECT_FALSE(broadcastsTo(Sizes{2, 3}, Sizes{1, 3}));
}

}  // namespace
}  // namespace faultline
