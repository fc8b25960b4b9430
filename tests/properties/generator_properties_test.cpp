// What every tape gives: a case that verifies, is written and read back equal, and is of a size worth
// testing.
#include <gtest/gtest.h>
// (RapidCheck's GoogleTest header needs gtest first.)
#include <rapidcheck/gtest.h>

#include "faultline/ir.h"
#include "generators/mutate/mutate.h"
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

// mutateCase aborts on a result that does not verify or is not read back.
RC_GTEST_PROP(MutateProperties, EditsOfAnyCaseByAnyTapeVerify, ()) {
  DrawnCase drawn = *drawnCases();
  Choices choices =
      Choices::fromTape(*rc::gen::container<std::vector<uint64_t>>(64, rc::gen::arbitrary<uint64_t>()));
  Case edited = mutateCase(drawn.value, choices);
  RC_ASSERT(!edited.runs.empty());
  Choices again = Choices::fromTape(choices.tape().choices);
  RC_ASSERT(writeCase(mutateCase(drawn.value, again)) == writeCase(edited));
}

// Bytes that nothing wrote on purpose, and text with a few bytes changed, which gets further.
RC_GTEST_PROP(ReaderProperties, NoBytesCrashTheReaders, ()) {
  std::string bytes = *rc::gen::container<std::string>(400, rc::gen::arbitrary<char>());
  std::string first =
      *rc::gen::element<std::string>("", "faultline case 1\n", "faultline tape 1\n", "graph(");
  std::string text = first + bytes;
  (void)readCase(text);
  (void)readGraph(text);
  (void)readTape(text);
  (void)readInputSpec(bytes);
  (void)fileKind(text);
}

RC_GTEST_PROP(ReaderProperties, ChangedBytesOfACaseAreReadOrRefusedWithAPlace, ()) {
  std::string text = writeCase((*drawnCases()).value);
  for (int edits = *rc::gen::inRange(1, 4); edits > 0; --edits) {
    size_t at = *rc::gen::inRange<size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        text[at] = *rc::gen::arbitrary<char>();
        break;
      case 1:
        text.erase(at, *rc::gen::inRange<size_t>(1, 20));
        break;
      default:
        text.insert(at, text.substr(*rc::gen::inRange<size_t>(0, text.size()), 20));
        break;
    }
  }
  Result<Case> read = readCase(text);
  if (!read) {
    RC_ASSERT(read.error().where.has_value());
    RC_ASSERT(!read.error().message.empty());
    return;
  }
  std::string written = writeCase(*read);
  Result<Case> again = readCase(written);
  RC_ASSERT(again.has_value());
  RC_ASSERT(writeCase(*again) == written);
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
  RecordProperty("median_nodes", static_cast<int>(sizes[kCases / 2]));
  EXPECT_GE(sizes[kCases / 2], 10u);
  for (const char* trait : {"if", "mutation", "view", "subgraph"}) {
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
