#include <gtest/gtest.h>

#include "faultline/ir.h"
#include "generators/generate/trial.h"
#include "generators/mutate/mutate.h"
#include "tests/generators/generate/cases.h"

namespace faultline {
namespace {

// mutateCase aborts on what does not verify or read: reaching the end is the test.
TEST(Mutate, IsTotalOverRandomCasesAndItsOwnResults) {
  std::map<std::string, size_t> kinds;
  size_t largest = 0, named_cuts = 0, seams = 0;
  for (uint64_t index = 0; index < 100; ++index) {
    Case c = caseOf(71, index);
    for (uint64_t step = 0; step < 10; ++step) {
      Choices choices = Choices::fromSeed(mixSeed(index, step));
      std::vector<std::string> made;
      std::string before = writeCase(c);
      Case next = mutateCase(c, choices, &made);
      EXPECT_EQ(writeCase(c), before) << "the original was changed";
      EXPECT_FALSE(made.empty());
      for (const std::string& kind : made) {
        ++kinds[kind];
        named_cuts += kind == "change_cuts" && next.plan.breaks.rfind("after ", 0) == 0;
      }
      for (const HookSpec& hook : next.plan.hooks) seams += !hook.seam.empty();
      c = std::move(next);
      largest = std::max(largest, countNodes(c));
      EXPECT_LE(c.graph->inputs().size(), mutate_limits::max_inputs);
      EXPECT_TRUE(isSmallCase(c)) << writeCase(c);
    }
  }
  for (const MutationKind& kind : mutationKinds()) EXPECT_GE(kinds[kind.name], 5u) << kind.name;
  EXPECT_GE(named_cuts, 5u);
  EXPECT_GE(seams, 20u);
  EXPECT_LE(largest, mutate_limits::max_nodes * 3 / 2);
}

TEST(Mutate, EveryKindChangesWhatItIsNamedFor) {
  for (const MutationKind& kind : mutationKinds()) {
    size_t applied = 0, changed = 0;
    for (uint64_t index = 0; index < 40; ++index) {
      Case c = caseOf(72, index);
      Choices choices = Choices::fromSeed(index);
      std::optional<Case> made = mutateCase(c, choices, kind.name);
      if (!made) continue;
      ++applied;
      changed += writeCase(*made) != writeCase(c);
    }
    EXPECT_GE(applied, 2u) << kind.name;
    EXPECT_GE(changed * 10, applied * 9) << kind.name;
  }
}

TEST(Mutate, TheSameSeedGivesTheSameBytes) {
  for (uint64_t index = 0; index < 60; ++index) {
    std::string text = writeCase(caseOf(73, index));
    EXPECT_EQ(mutateCaseText(text, index), mutateCaseText(text, index));
    std::string other = writeCase(caseOf(74, index));
    EXPECT_EQ(crossCaseTexts(text, other, index), crossCaseTexts(text, other, index));
  }
}

TEST(Mutate, SeedsGiveDifferentEdits) {
  std::string text = writeCase(caseOf(75, 3));
  std::set<std::string> results;
  for (uint64_t seed = 0; seed < 50; ++seed) results.insert(mutateCaseText(text, seed));
  EXPECT_GE(results.size(), 45u);
}

TEST(Mutate, TextThatIsNoCaseGivesOne) {
  for (const char* text :
       {"", "graph(",
        "faultline case 1\nrun:\n\ngraph():\n  %a : Tensor = aten::no_such()\n  return (%a)\n"}) {
    EXPECT_TRUE(readCase(mutateCaseText(text, 1)).has_value());
    EXPECT_TRUE(readCase(crossCaseTexts(text, text, 1)).has_value());
  }
}

TEST(Mutate, ACrossHoldsBothAndOftenConnectsThem) {
  size_t both = 0, connected = 0, cases = 100;
  for (uint64_t index = 0; index < cases; ++index) {
    Case a = caseOf(76, index), b = caseOf(77, index);
    Choices choices = Choices::fromSeed(index);
    Case made = crossCases(a, b, choices);
    bool spliced = countNodes(made) > std::max(countNodes(a), countNodes(b));
    both += spliced;
    connected += spliced && made.graph->inputs().size() < a.graph->inputs().size() + b.graph->inputs().size();
    EXPECT_EQ(made.graph->inputs().size(), made.runs[0].inputs.size());
  }
  RecordProperty("both", static_cast<int>(both));
  RecordProperty("connected", static_cast<int>(connected));
  EXPECT_GE(both, cases / 2);
  EXPECT_GE(connected, cases / 10);
}

TEST(Mutate, PlansStillNameTheSameOps) {
  Result<Case> c = readCase(
      "faultline case 1\nbreaks: after relu tanh_1\nhook: tensor seam tanh_1\nrun: float32[2,3]:grad\n  "
      "backward: all\n\n"
      "graph(%x : Tensor):\n  %a : Tensor = aten::tanh(%x)\n  %b : Tensor = aten::relu(%a)\n"
      "  %c : Tensor = aten::tanh(%b)\n  return (%c)\n");
  ASSERT_TRUE(c.has_value());
  // Whichever tanh is gone or doubled, names count anew and still mean the op that is fed by relu.
  size_t kept = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Choices choices = Choices::fromSeed(seed);
    std::optional<Case> made = mutateCase(*c, choices, seed % 2 == 0 ? "delete_node" : "duplicate_node");
    if (!made) continue;
    NodeNames names(*made->graph);
    for (const HookSpec& hook : made->plan.hooks) {
      const torch::jit::Node* node = names.find(hook.seam);
      ASSERT_NE(node, nullptr);
      EXPECT_EQ(node->kind(), torch::jit::aten::tanh);
      ++kept;
    }
  }
  EXPECT_GT(kept, 50u);
}

TEST(Mutate, SmallCasesAreTold) {
  auto isSmall = [](const std::string& runs, const std::string& constant) {
    Result<Case> c =
        readCase("faultline case 1\nrun: " + runs +
                 "\n\ngraph(%x : Tensor, %n : int):\n  %k : int = prim::Constant[value=" + constant +
                 "]()\n  %a : Tensor = aten::add(%x, %n, %k)\n  return (%a)\n");
    return c.has_value() && isSmallCase(*c);
  };
  EXPECT_TRUE(isSmall("float32[2,3], 3", "1"));
  EXPECT_FALSE(isSmall("float32[20000,30000], 3", "1"));
  EXPECT_FALSE(isSmall("float32[2,3], 99999999", "1"));
  EXPECT_FALSE(isSmall("float32[2,3], 3", "99999999"));
}

// What static edits miss throws in the reference: little enough of it.
TEST(Mutate, FewResultsThrow) {
  size_t throws = 0, backward_throws = 0, made = 0;
  for (uint64_t index = 0; index < 120; ++index) {
    Case c = caseOf(78, index);
    for (uint64_t step = 0; step < 4; ++step) {
      Choices choices = Choices::fromSeed(mixSeed(index, step));
      c = mutateCase(c, choices);
      TrialResult trial = tryRun(c, c.runs.front());
      ++made;
      throws += !trial.forward;
      backward_throws += trial.forward && !trial.backward;
    }
  }
  RecordProperty("throws", static_cast<int>(throws));
  RecordProperty("backward_throws", static_cast<int>(backward_throws));
  EXPECT_LE(throws * 100, made * 5);
  EXPECT_LE(backward_throws * 100, made * 5);
}

}  // namespace
}  // namespace faultline
