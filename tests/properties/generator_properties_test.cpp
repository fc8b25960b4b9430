// What every tape gives: a case that verifies, is written and read back equal, and is of a size worth
// testing.
#include <gtest/gtest.h>
// (RapidCheck's GoogleTest header needs gtest first.)
#include <rapidcheck/gtest.h>

#include "faultline/ir.h"
#include "tests/properties/drawn_case.h"

namespace faultline::properties {
namespace {

size_t opCount(const Case& c) {
  size_t ops = 0;
  for (const auto* node : c.graph->nodes()) {
    ops += node->kind() != torch::jit::prim::Constant;
  }
  return ops;
}

RC_GTEST_PROP(GeneratorProperties, AnyTapeGivesACaseThatVerifies, ()) {
  DrawnCase drawn = *drawnCases();
  auto verified = verifyGraph(*drawn.value.graph);
  if (!verified) {
    RC_FAIL(verified.error().str());
  }
}

RC_GTEST_PROP(GeneratorProperties, AnyCutOfATapeGivesACaseThatVerifies, ()) {
  DrawnCase drawn = *drawnCases();
  auto choices = drawn.tape.choices;
  choices.resize(*rc::gen::inRange<size_t>(0, choices.size() + 1));
  DrawnCase cut = drawCase(choices);
  RC_ASSERT(verifyGraph(*cut.value.graph).has_value());
}

RC_GTEST_PROP(GeneratorProperties, TheRecordedTapeGivesTheSameCase, ()) {
  DrawnCase drawn = *drawnCases();
  DrawnCase again = drawCase(drawn.tape.choices);
  RC_ASSERT(writeCase(again.value) == writeCase(drawn.value));
  RC_ASSERT(again.tape == drawn.tape);
}

RC_GTEST_PROP(GeneratorProperties, WhatIsWrittenIsReadBackEqual, ()) {
  DrawnCase drawn = *drawnCases();
  std::string text = writeCase(drawn.value);
  auto read = readCase(text);
  if (!read) {
    RC_FAIL(read.error().str());
  }
  RC_ASSERT(describeGraphDifference(*read->graph, *drawn.value.graph) == "");
  RC_ASSERT(read->runs == drawn.value.runs);
  RC_ASSERT(read->plan == drawn.value.plan);
  RC_ASSERT(read->seed == drawn.value.seed);
  RC_ASSERT(writeCase(*read) == text);
}

// The distribution is a promise of its own: a generator can silently come to make next to nothing.
TEST(GeneratorDistribution, OfTheTapesThatThePropertiesSee) {
  constexpr int kCases = 300;
  std::vector<size_t> sizes;
  std::map<std::string, int> share;
  rc::Random random(7);
  for (int i = 0; i < kCases; ++i) {
    DrawnCase drawn = drawnCases()(random.split(), 100).value();
    sizes.push_back(opCount(drawn.value));
    for (const auto& trait : caseTraits(drawn.value)) {
      ++share[trait];
    }
  }
  std::sort(sizes.begin(), sizes.end());
  EXPECT_GE(sizes[kCases / 2], 10u);
  for (const char* trait : {"control_flow", "mutation", "view", "subgraph"}) {
    EXPECT_GE(share[trait], kCases / 5) << trait;
  }
}

// A failing property must end at the ops that matter, not at a large program. The failure is planted: "no
// case has a relu whose result is used by a sum".
TEST(Shrinking, APlantedFailureEndsAtAFewOps) {
  auto fails = [](const DrawnCase& drawn) {
    for (auto* node : drawn.value.graph->nodes()) {
      if (node->kind() == c10::Symbol::fromQualString("aten::sum")) {
        for (auto* input : node->inputs()) {
          if (input->node()->kind() == c10::Symbol::fromQualString("aten::relu")) {
            return true;
          }
        }
      }
    }
    return false;
  };
  GenerateOptions options;
  options.ops_added = {"relu", "sum"};
  rc::Random random(11);
  int shrunk = 0;
  for (int i = 0; i < 2000 && shrunk < 3; ++i) {
    auto shrinkable = drawnCases(options)(random.split(), 100);
    if (fails(shrinkable.value())) {
      DrawnCase smallest = rc::shrinkable::findLocalMin(shrinkable, fails).first;
      EXPECT_LE(opCount(smallest.value), 3u) << writeCase(smallest.value);
      ++shrunk;
    }
  }
  EXPECT_EQ(shrunk, 3) << "the planted failure was not found";
}

}  // namespace
}  // namespace faultline::properties
