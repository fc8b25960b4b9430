// What the graph-break compiler makes of generated programs as a whole: refusing everything, or running
// everything eagerly, would be right too, and worth nothing.
#include <gtest/gtest.h>

#include "faultline/graph_break.h"
#include "generators/generate/generate.h"
#include "oracles/exec/prepare.h"

namespace faultline::properties {
namespace {

constexpr uint64_t kCases = 600;

Case generated(uint64_t index) {
  const uint64_t seed = caseSeed(1, index);
  Choices choices = Choices::fromSeed(seed);
  return generateCase(choices, seed);
}

bool hasTrait(const Case& c, const std::string& trait) { return caseTraits(c).count(trait) > 0; }

TEST(BreakProperties, NineOfTenPlansWithoutMutationAreAcceptedWhole) {
  int accepted = 0, asked = 0;
  std::map<std::string, int> refused;
  for (uint64_t i = 0; i < kCases; ++i) {
    const Case c = generated(i);
    if (hasTrait(c, "mutation")) continue;
    auto prepared = prepareCase(c);
    ASSERT_TRUE(prepared);
    settleTypes(*prepared->graph, c.runs);  // as lanes do: buckets are of known sizes
    auto policy = readBreakPolicy(c, *prepared);
    ASSERT_TRUE(policy);
    if (policy->kind() == BreakPolicy::Kind::None) policy = BreakPolicy::every(3);
    // Other policies wish for what a program may not have: a unit that is used twice, an op without gradient.
    if (policy->kind() != BreakPolicy::Kind::Every && policy->kind() != BreakPolicy::Kind::After) continue;
    auto plan = planBreaks(*prepared->graph, *policy);
    ASSERT_TRUE(plan) << plan.error().str();
    ++asked;
    accepted += plan->refused.empty();
    for (const RefusedCut& cut : plan->refused) {
      EXPECT_FALSE(cut.reason.empty());
      ++refused[cut.code];
    }
  }
  ASSERT_GT(asked, static_cast<int>(kCases / 4));
  std::cout << accepted << " of " << asked << " plans accepted\n";
  for (const auto& [code, count] : refused) RecordProperty("refused_" + code, count);
  EXPECT_GE(accepted * 10, asked * 9) << accepted << " of " << asked << " plans accepted";
}

TEST(BreakProperties, TwoOfFiveNodesOfDifferentiableCasesAreCompiled) {
  size_t compiled = 0, all = 0, compiled_without_mutation = 0, all_without_mutation = 0;
  for (uint64_t i = 0; i < kCases; ++i) {
    const Case c = generated(i);
    if (!hasTrait(c, "differentiable")) continue;
    auto prepared = prepareCase(c);
    ASSERT_TRUE(prepared);
    auto plan = planBreaks(*prepared->graph, BreakPolicy::none());
    ASSERT_TRUE(plan);
    auto made = compile(prepared->graph, *plan);
    ASSERT_TRUE(made) << made.error().str();
    size_t here = 0, total = 0;
    for (const CompiledPiece& piece : made->pieces()) {
      total += piece.ops.size();
      for (const PiecePart& part : piece.parts) {
        if (part.backward) here += part.ops.size();
      }
    }
    compiled += here;
    all += total;
    if (!hasTrait(c, "mutation")) {
      compiled_without_mutation += here;
      all_without_mutation += total;
    }
  }
  std::cout << compiled << " of " << all << " nodes compiled; without mutation " << compiled_without_mutation
            << " of " << all_without_mutation << "\n";
  EXPECT_GE(compiled * 10, all * 4);
  EXPECT_GE(compiled_without_mutation * 10, all_without_mutation * 4);
}

}  // namespace
}  // namespace faultline::properties
