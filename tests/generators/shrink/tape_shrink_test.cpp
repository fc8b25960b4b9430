#include "generators/shrink/tape_shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace faultline {
namespace {

// A toy generator in the shape of the real one: "one more?" and an op inside a span each.
std::vector<uint64_t> drawOps(Choices& choices) {
  std::vector<uint64_t> ops;
  while (ops.size() < 50) {
    Choices::Span span(choices, "op");
    if (choices.below(8) == 0) {
      break;
    }
    ops.push_back(choices.below(1000));
    for (uint64_t i = choices.below(4); i > 0; --i) {
      Choices::Span operand(choices, "operand");
      choices.below(100);
    }
  }
  return ops;
}

Tape record(const std::vector<uint64_t>& given) {
  Choices choices = Choices::fromTape(given);
  drawOps(choices);
  return choices.tape();
}

std::vector<uint64_t> opsOf(const std::vector<uint64_t>& given) {
  Choices choices = Choices::fromTape(given);
  return drawOps(choices);
}

TEST(TapeShrink, EveryEditIsSimplerAndGivesAValidDraw) {
  Choices choices = Choices::fromSeed(5);
  drawOps(choices);
  const Tape& tape = choices.tape();
  auto edits = shrinkEdits(tape);
  ASSERT_GT(edits.size(), tape.spans.size());
  for (const auto& edit : edits) {
    auto candidate = edit.apply(tape.choices);
    bool shorter = candidate.size() < tape.choices.size();
    EXPECT_TRUE(shorter || (candidate.size() == tape.choices.size() && candidate < tape.choices));
    EXPECT_LE(opsOf(candidate).size(), 50u);
  }
}

TEST(TapeShrink, FindsTheOneOpThatMatters) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Choices choices = Choices::fromSeed(seed);
    auto guilty = [](const std::vector<uint64_t>& ops) {
      return std::any_of(ops.begin(), ops.end(), [](uint64_t op) { return op >= 700; });
    };
    if (!guilty(drawOps(choices))) {
      continue;
    }
    Tape smallest = minimizeTape(choices.tape(), [&](const std::vector<uint64_t>& given) {
      return guilty(opsOf(given)) ? std::optional(record(given)) : std::nullopt;
    });
    EXPECT_EQ(opsOf(smallest.choices), std::vector<uint64_t>{700}) << "seed " << seed;
  }
}

TEST(TapeShrink, StopsAtTheLimitWithAFailingTape) {
  Choices choices = Choices::fromSeed(3);
  drawOps(choices);
  size_t calls = 0;
  Tape result = minimizeTape(choices.tape(),
                             [&](const std::vector<uint64_t>& given) {
                               ++calls;
                               return std::optional(record(given));
                             },
                             {4});
  EXPECT_EQ(calls, 4u);
  EXPECT_LT(result.choices.size(), choices.tape().choices.size());
}

}  // namespace
}  // namespace faultline
