#include <gtest/gtest.h>

#include "faultline/ir.h"
#include "generators/generate/trial.h"
#include "tests/generators/generate/cases.h"

namespace faultline {
namespace {

void expectValid(Choices choices, uint64_t seed, const std::string& what) {
  Case c = generateCase(choices, seed);
  Result<void> verified = verifyGraph(*c.graph);
  EXPECT_TRUE(verified.has_value()) << what << ": " << (verified ? "" : verified.error().str());
  ASSERT_FALSE(c.runs.empty());
  for (const CaseRun& run : c.runs) EXPECT_TRUE(tryRun(c, run).forward) << what;
}

TEST(Tapes, RandomTapesOfAnyLengthAreValid) {
  Random random(21);
  for (int i = 0; i < 150; ++i) {
    std::vector<uint64_t> tape(random.below(700));
    for (uint64_t& choice : tape) choice = random.next();
    expectValid(Choices::fromTape(tape), 21, "tape " + std::to_string(i));
  }
}

TEST(Tapes, CutTapesAreValid) {
  for (uint64_t index = 0; index < 8; ++index) {
    uint64_t own = caseSeed(22, index);
    Choices choices = Choices::fromSeed(own);
    generateCase(choices, own);
    std::vector<uint64_t> whole = choices.tape().choices;
    for (size_t length = 0; length < whole.size(); length += 17) {
      std::vector<uint64_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      expectValid(Choices::fromTape(cut), own, "cut at " + std::to_string(length));
    }
  }
}

TEST(Tapes, ExtremeTapesAreValid) {
  expectValid(Choices::fromTape({}), 1, "empty");
  expectValid(Choices::fromTape(std::vector<uint64_t>(4096, 0)), 1, "zeros");
  expectValid(Choices::fromTape(std::vector<uint64_t>(4096, UINT64_MAX)), 1, "greatest");
  expectValid(Choices::fromTape(std::vector<uint64_t>(4096, 1)), 1, "ones");
  std::vector<uint8_t> bytes(2000, 0xff);
  expectValid(Choices::fromBytes(bytes.data(), bytes.size()), 1, "bytes");
}

// What shrinking relies on: nothing chosen is nothing generated.
TEST(Tapes, TheEmptyTapeIsTheSimplestCase) {
  Choices choices = Choices::fromTape({});
  Case c = generateCase(choices, 1);
  EXPECT_EQ(countNodes(c), 0u);
  EXPECT_EQ(c.runs.size(), 1u);
  EXPECT_EQ(c.plan, Plan());
}

TEST(Tapes, DroppingAnOpsSpanDropsAnOp) {
  size_t smaller = 0, tried = 0;
  for (uint64_t index = 0; index < 10; ++index) {
    uint64_t own = caseSeed(23, index);
    Choices choices = Choices::fromSeed(own);
    size_t nodes = countNodes(generateCase(choices, own));
    const Tape& tape = choices.tape();
    for (const TapeSpan& span : tape.spans) {
      if (span.label != "step") continue;
      std::vector<uint64_t> rest(tape.choices.begin(),
                                 tape.choices.begin() + static_cast<std::ptrdiff_t>(span.begin));
      rest.insert(rest.end(), tape.choices.begin() + static_cast<std::ptrdiff_t>(span.end),
                  tape.choices.end());
      Choices again = Choices::fromTape(rest);
      ++tried;
      if (countNodes(generateCase(again, own)) < nodes) ++smaller;
    }
  }
  ASSERT_GT(tried, 50u);
  EXPECT_GT(smaller * 2, tried) << smaller << " of " << tried;
}

}  // namespace
}  // namespace faultline
