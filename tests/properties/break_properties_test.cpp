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

struct Acceptance {
  int accepted = 0, asked = 0;

  void ask(const PreparedCase& prepared, const BreakPolicy& policy) {
    auto plan = planBreaks(*prepared.graph, policy);
    ASSERT_TRUE(plan) << plan.error().str();
    ++asked;
    accepted += plan->refused.empty();
    for (const RefusedCut& cut : plan->refused) EXPECT_FALSE(cut.reason.empty());
  }
};

// Cuts that are asked for by name or by number can nearly always be had. Other policies wish for what a
// program may not have: a unit of parameters that only one stretch uses, an op that a gradient comes back to.
TEST(BreakProperties, NineOfTenPlansWithoutMutationAreAcceptedWhole) {
  Acceptance asked_for, wished;
  for (uint64_t i = 0; i < kCases; ++i) {
    const Case c = generated(i);
    if (hasTrait(c, "mutation")) continue;
    auto prepared = prepareCase(c);
    ASSERT_TRUE(prepared);
    settleTypes(*prepared->graph, c.runs);  // as lanes do: buckets are of known sizes
    auto policy = readBreakPolicy(c, *prepared);
    ASSERT_TRUE(policy);
    const bool by_name_or_number =
        policy->kind() == BreakPolicy::Kind::Every || policy->kind() == BreakPolicy::Kind::After;
    if (!by_name_or_number && policy->kind() != BreakPolicy::Kind::None) wished.ask(*prepared, *policy);
    asked_for.ask(*prepared, by_name_or_number ? *policy : BreakPolicy::every(3));
  }
  std::cout << asked_for.accepted << " of " << asked_for.asked << " plans accepted, of other policies "
            << wished.accepted << " of " << wished.asked << "\n";
  ASSERT_GT(asked_for.asked, static_cast<int>(kCases / 4));
  ASSERT_GT(wished.asked, static_cast<int>(kCases / 10));
  EXPECT_GE(asked_for.accepted * 10, asked_for.asked * 9);
  EXPECT_GE(wished.accepted * 3, wished.asked * 2);
}

TEST(BreakProperties, ThreeOfFiveNodesOfDifferentiableCasesAreCompiled) {
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
  EXPECT_GE(compiled * 10, all * 6);
  EXPECT_GE(compiled_without_mutation * 10, all_without_mutation * 6);
}

}  // namespace
}  // namespace faultline::properties
