#include "generators/choices/choices.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace faultline {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(Random, IsSplitMix64) {
  Random random(0);
  EXPECT_EQ(random.next(), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(random.next(), 0x6E789E6AA1B965F4u);
}

TEST(Random, NormalHasMeanZeroAndVarianceOne) {
  Random random(7);
  double sum = 0, squares = 0, largest = 0;
  constexpr int kDrawn = 200000;
  for (int i = 0; i < kDrawn; ++i) {
    double x = random.normal();
    sum += x;
    squares += x * x;
    largest = std::max(largest, std::abs(x));
  }
  EXPECT_NEAR(sum / kDrawn, 0, 0.01);
  EXPECT_NEAR(squares / kDrawn, 1, 0.01);
  EXPECT_GT(largest, 3.5);
  EXPECT_LT(largest, 6);
}

// The bits are a promise: cases carry seeds, not values.
TEST(Random, ValuesNeverChange) {
  Random random(1);
  EXPECT_EQ(random.uniform(), 0x1.22145bd91204bp-1);
  EXPECT_EQ(random.normal(), 0x1.631a020b00000p+1);
  EXPECT_EQ(random.below(1000), 533u);
  EXPECT_EQ(mixSeed(1, 2), 0x2A433261ADED2F0Au);
}

RC_GTEST_PROP(Random, BelowStaysBelow, (uint64_t seed, uint64_t bound)) {
  RC_PRE(bound > 0);
  Random random(seed);
  for (int i = 0; i < 100; ++i) RC_ASSERT(random.below(bound) < bound);
}

TEST(MixSeed, PartsAndSeedsGiveDifferentStreams) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t index = 0; index < 100; ++index) seen.insert(mixSeed(seed, index));
  }
  EXPECT_EQ(seen.size(), 10000u);
}

std::vector<uint64_t> drawSome(Choices& choices) {
  std::vector<uint64_t> drawn;
  for (uint64_t bound : {1ul, 2ul, 7ul, 256ul, 257ul, 1ul << 40}) drawn.push_back(choices.below(bound));
  drawn.push_back(static_cast<uint64_t>(choices.between(-5, 5)));
  drawn.push_back(choices.flip(30));
  drawn.push_back(choices.weighted({0, 3, 0, 5}));
  std::string letters = "abc";
  drawn.push_back(static_cast<uint64_t>(choices.pick(letters)));
  return drawn;
}

RC_GTEST_PROP(Choices, TapeMakesTheSameChoicesAgain, (uint64_t seed)) {
  Choices first = Choices::fromSeed(seed);
  std::vector<uint64_t> drawn = drawSome(first);
  Choices again = Choices::fromTape(first.tape().choices);
  RC_ASSERT(drawSome(again) == drawn);
  RC_ASSERT(again.exhausted());
  RC_ASSERT(again.tape() == first.tape());
}

RC_GTEST_PROP(Choices, AnyTapeStaysInBounds, (std::vector<uint64_t> given)) {
  Choices choices = Choices::fromTape(given);
  for (uint64_t bound : {1ul, 2ul, 3ul, 1000ul, ~0ul}) RC_ASSERT(choices.below(bound) < bound);
  int64_t between = choices.between(-3, 4);
  RC_ASSERT(between >= -3 && between <= 4);
}

RC_GTEST_PROP(Choices, AnyBytesStayInBoundsAndReplayFromTheirTape, (std::vector<uint8_t> bytes)) {
  Choices choices = Choices::fromBytes(bytes.data(), bytes.size());
  std::vector<uint64_t> drawn = drawSome(choices);
  Choices again = Choices::fromTape(choices.tape().choices);
  RC_ASSERT(drawSome(again) == drawn);
}

TEST(Choices, BehindTheEndEveryChoiceIsTheSimplest) {
  Choices choices = Choices::fromTape({});
  EXPECT_TRUE(choices.exhausted());
  EXPECT_EQ(choices.below(10), 0u);
  EXPECT_EQ(choices.between(-4, 9), -4);
  EXPECT_FALSE(choices.flip(99));
  EXPECT_EQ(choices.weighted({0, 0, 2, 1}), 2u);
}

TEST(Choices, CertainAndImpossibleFlips) {
  Choices choices = Choices::fromSeed(3);
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(choices.flip(100));
    EXPECT_FALSE(choices.flip(0));
  }
}

TEST(Choices, FlipsComeAsOftenAsAsked) {
  Choices choices = Choices::fromSeed(3);
  int heads = 0;
  for (int i = 0; i < 20000; ++i) heads += choices.flip(30);
  EXPECT_NEAR(heads / 20000.0, 0.3, 0.02);
}

TEST(Choices, WeightsAllZeroGiveTheFirst) {
  Choices choices = Choices::fromSeed(3);
  EXPECT_EQ(choices.weighted({0, 0}), 0u);
  EXPECT_EQ(choices.weighted({}), 0u);
}

TEST(Choices, TheFullRangeIsReached) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Choices::fromTape({0}).between(kLow, kHigh), kLow);
  EXPECT_EQ(Choices::fromTape({~0ul}).between(kLow, kHigh), kHigh);
  EXPECT_EQ(Choices::fromTape({5}).between(3, 3), 3);
}

TEST(Choices, BytesAreReadAsFewAsTheBoundNeeds) {
  std::vector<uint8_t> bytes = {5, 0x34, 0x12, 9};
  Choices choices = Choices::fromBytes(bytes.data(), bytes.size());
  EXPECT_EQ(choices.below(256), 5u);
  EXPECT_EQ(choices.below(0x10000), 0x1234u);
  EXPECT_EQ(choices.below(1), 0u);
  EXPECT_EQ(choices.below(4), 1u);
  EXPECT_TRUE(choices.exhausted());
}

TEST(Choices, SpansCoverTheChoicesOfTheirLife) {
  Choices choices = Choices::fromTape({1, 2, 3});
  choices.below(10);
  {
    Choices::Span op(choices, "op");
    choices.below(10);
    {
      Choices::Span operand(choices, "operand");
      choices.below(10);
      // Read in the middle: open spans reach to here.
      EXPECT_THAT(choices.tape().spans, ElementsAre(TapeSpan{"op", 1, 3, 0}, TapeSpan{"operand", 2, 3, 1}));
    }
  }
  Choices::Span empty(choices, "empty");
  EXPECT_THAT(choices.tape().spans,
              ElementsAre(TapeSpan{"op", 1, 3, 0}, TapeSpan{"operand", 2, 3, 1}, TapeSpan{"empty", 3, 3, 0}));
}

TEST(ChoicesDeathTest, AChoiceAmongNothingIsABug) {
  Choices choices = Choices::fromSeed(1);
  EXPECT_DEATH(choices.below(0), "a choice among nothing");
  EXPECT_DEATH(choices.between(1, 0), "empty range");
}

}  // namespace
}  // namespace faultline
