// The laws of the profile protocol, on the profile nodes that generated cases carry: missing, unseen, merged,
// contradicting each other.
#include <gtest/gtest.h>
// (RapidCheck's GoogleTest header needs gtest first.)
#include <rapidcheck/gtest.h>

#include "faultline/ir.h"
#include "faultline/profile.h"
#include "faultline/recorder.h"
#include "oracles/judge.h"
#include "tests/properties/drawn_case.h"

namespace faultline::properties {
namespace {

GenerateOptions withProfiles() {
  GenerateOptions options;
  options.features = {"+profile"};
  return options;
}

std::shared_ptr<Graph> propagated(const Graph& graph) {
  auto copy = const_cast<Graph&>(graph).copy();
  propagateProfileNode(copy);
  return copy;
}

std::vector<Use> usesOf(const Graph& graph) {
  std::vector<Use> uses = profileSites(graph);
  uses.erase(std::remove_if(uses.begin(), uses.end(),
                            [](const Use& use) { return use.user->kind() == torch::jit::prim::profile; }),
             uses.end());
  return uses;
}

std::string textOf(const ProfileLookup& lookup) {
  return std::string(toString(lookup.state)) + (lookup.conditional ? "?" : "") +
         (lookup.type ? writeType(*lookup.type) : "");
}

// Answers as text, one per use.
std::vector<std::string> answersOf(const Graph& graph) {
  const ProfileIndex index(graph);
  std::vector<std::string> answers;
  for (const Use& use : usesOf(graph)) answers.push_back(textOf(index.lookup(use)));
  return answers;
}

bool contradicts(const Graph& graph) {
  const std::vector<ProfileFinding> findings = findProfileViolations(graph);
  return std::any_of(findings.begin(), findings.end(),
                     [](const ProfileFinding& finding) { return finding.kind != "not_at_feed"; });
}

// One property, since drawing a case costs more than all of its laws.
RC_GTEST_PROP(ProfileProperties, PropagationAndRemoval, ()) {
  const DrawnCase drawn = *drawnCases(withProfiles());
  const Graph& graph = *drawn.value.graph;
  auto once = propagated(graph);
  RC_ASSERT(verifyGraph(*once).has_value());
  // Idempotent.
  RC_ASSERT(describeGraphDifference(*propagated(*once), *once) == "");
  // No answer changes, and each stands at the feed of its use.
  RC_ASSERT(answersOf(*once) == answersOf(graph));
  const ProfileIndex index(*once);
  for (const Use& use : usesOf(*once)) {
    const Node* node = index.retrieve(use);
    RC_ASSERT((node != nullptr) == (index.lookup(use).type != nullptr));
    RC_ASSERT(node == nullptr || node == use.user->input(use.offset)->node());
  }
  RC_ASSERT(contradicts(graph) || validateProfileNode(once));
  // Removal undoes it: of clones alone, and of everything.
  auto without_clones = once->copy();
  removeProfileClones(*without_clones);
  RC_ASSERT(describeGraphDifference(*without_clones, graph) == "");
  auto plain = drawn.value.graph->copy();
  removeProfileNodes(*plain);
  removeProfileNodes(*once);
  RC_ASSERT(describeGraphDifference(*once, *plain) == "");
  RC_ASSERT(writeGraph(*once).find("prim::profile") == std::string::npos);
}

// However a graph is asked or carried about.
RC_GTEST_PROP(ProfileProperties, AnswersBelongToTheGraphAndNotToItsCopy, ()) {
  const DrawnCase drawn = *drawnCases(withProfiles());
  const Graph& graph = *drawn.value.graph;
  const std::vector<std::string> answers = answersOf(graph);
  RC_ASSERT(answersOf(*drawn.value.graph->copy()) == answers);
  const auto read = readGraph(writeGraph(graph));
  RC_ASSERT(read.has_value());
  RC_ASSERT(answersOf(**read) == answers);
  // One use by itself, an index of its own.
  const ProfileIndex index(graph);
  const std::vector<Use> uses = usesOf(graph);
  const size_t asked = uses.empty() ? 0 : *rc::gen::inRange<size_t>(0, uses.size());
  if (!uses.empty() && uses[asked].user->owningGraph() == &graph) {
    const ProfileLookup alone = lookupProfile(uses[asked]);
    RC_ASSERT(textOf(alone) == textOf(index.lookup(uses[asked])));
    RC_ASSERT(retrieveProfileInformation(uses[asked]) == index.retrieve(uses[asked]));
  }
}

// All laws at once, soundness against the tensors that arrive among them, on profiles of the first run.
RC_GTEST_PROP(ProfileProperties, AnswersDescribeTheTensorsThatArrive, ()) {
  const DrawnCase drawn = *drawnCases();
  JudgeOptions options;
  options.lanes = {"engine.removed"};
  options.oracles = {"profile_laws"};
  const CaseResult result = judgeCase(drawn.value, options);
  for (const Judgement& judgement : result.judgements) {
    if (judgement.verdict.failed()) RC_FAIL(judgement.signature + ": " + judgement.verdict.message());
  }
}

// What the properties above see must be worth seeing.
TEST(ProfileDistribution, OfTheNodesThatThePropertiesSee) {
  constexpr int kCases = 100;
  int propagates = 0;
  int contradictory = 0;
  int answered = 0;
  int uses = 0;
  rc::Random random(5);
  for (int i = 0; i < kCases; ++i) {
    const DrawnCase drawn = drawnCases(withProfiles())(random.split(), 100).value();
    contradictory += contradicts(*drawn.value.graph) ? 1 : 0;
    propagates += graphsEqual(*propagated(*drawn.value.graph), *drawn.value.graph) ? 0 : 1;
    for (const std::string& answer : answersOf(*drawn.value.graph)) {
      ++uses;
      answered += answer.rfind("unknown", 0) != 0 && answer.rfind("unseen", 0) != 0 ? 1 : 0;
    }
  }
  EXPECT_GE(propagates, kCases / 2);
  EXPECT_GE(contradictory, kCases / 20);
  EXPECT_LE(contradictory, kCases / 2);
  EXPECT_GE(answered, uses / 3);
  EXPECT_LE(answered, uses);
}

}  // namespace
}  // namespace faultline::properties
