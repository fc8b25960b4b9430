// What static edits miss is an error of the reference lane, and such a case is skipped. Too many, and a
// fuzzer spends its time on nothing.
#include <gtest/gtest.h>

#include <map>

#include "generators/generate/generate.h"
#include "generators/mutate/mutate.h"
#include "oracles/judge.h"

namespace faultline::properties {
namespace {

TEST(MutatedCases, FewAreSkippedBecauseTheReferenceThrows) {
  constexpr uint64_t kBegun = 60, kEdits = 6;
  std::map<std::string, uint64_t> skips;
  uint64_t judged = 0;
  for (uint64_t index = 0; index < kBegun; ++index) {
    uint64_t seed = caseSeed(81, index);
    Choices choices = Choices::fromSeed(seed);
    Case c = generateCase(choices, seed);
    // As in a corpus: each builds on what the one before left.
    for (uint64_t edit = 0; edit < kEdits; ++edit) {
      Choices edits = Choices::fromSeed(mixSeed(seed, edit));
      Case edited = mutateCase(c, edits);
      CaseResult result = judgeCase(edited, {});
      ++judged;
      ++skips[result.skip];
      // A fuzzer keeps what runs; errors that pile up would count one mistake six times.
      if (result.skip.empty()) c = std::move(edited);
    }
  }
  EXPECT_LE(skips["reference_throws"] * 100, judged * 5) << "of " << judged;
  EXPECT_EQ(skips["invalid_graph"], 0u);
  EXPECT_GE(skips[""] * 100, judged * 90);
}

TEST(MutatedCases, FewCrossedOnesAreSkippedBecauseTheReferenceThrows) {
  constexpr uint64_t kPairs = 60;
  uint64_t throws = 0;
  for (uint64_t index = 0; index < kPairs; ++index) {
    uint64_t seed = caseSeed(82, index);
    Choices choices = Choices::fromSeed(seed);
    Case a = generateCase(choices, seed), b = generateCase(choices, seed + 1);
    throws += judgeCase(crossCases(a, b, choices), {}).skip == "reference_throws";
  }
  EXPECT_LE(throws * 100, kPairs * 5) << "of " << kPairs;
}

}  // namespace
}  // namespace faultline::properties
