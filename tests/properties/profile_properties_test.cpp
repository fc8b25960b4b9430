// The laws of the profile protocol, on the profile nodes that generated cases carry: missing, unseen, merged,
// contradicting each other.
#include <gtest/gtest.h>
// (RapidCheck's GoogleTest header needs gtest first.)
#include <rapidcheck/gtest.h>

#include <torch/csrc/jit/passes/create_autodiff_subgraphs.h>
#include <torch/csrc/jit/passes/create_functional_graphs.h>
#include <torch/csrc/jit/passes/utils/subgraph_utils.h>

#include <map>
#include <set>

#include "faultline/ir.h"
#include "faultline/profile.h"
#include "faultline/recorder.h"
#include "oracles/exec/global_state.h"
#include "oracles/judge.h"
#include "oracles/passes/pass_table.h"
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

// Every node but constants (of which libtorch asks whether they have attributes) gets a number of its own. It
// goes where the node goes, and ops that do the same are no longer alike, so no pass takes one for another.
c10::Symbol numberMark() { return c10::Symbol::attr("number"); }

template <class Visit>
void eachNode(const Graph& graph, Visit visit) {
  std::vector<const torch::jit::Block*> open = {graph.block()};
  while (!open.empty()) {
    const torch::jit::Block* block = open.back();
    open.pop_back();
    for (const Node* node : block->nodes()) {
      visit(const_cast<Node*>(node));
      for (const torch::jit::Block* inner : node->blocks()) open.push_back(inner);
      if (node->hasAttribute(torch::jit::attr::Subgraph))
        open.push_back(node->g(torch::jit::attr::Subgraph)->block());
    }
  }
}

bool isEvidence(const Node& node) {
  return node.kind() == torch::jit::prim::profile && !node.hasAttribute(c10::Symbol::attr("faultline_clone"));
}

void number(const Graph& graph) {
  int64_t next = 0;
  eachNode(graph, [&](Node* node) {
    if (node->kind() != torch::jit::prim::Constant) node->i_(numberMark(), next++);
  });
}

const Value* behindProfiles(const Value* value) {
  while (value->node()->kind() == torch::jit::prim::profile) value = value->node()->input();
  return value;
}

// By node and operand; -1: what the graph returns.
using NumberedUse = std::pair<int64_t, size_t>;

struct NumberedAnswers {
  std::map<NumberedUse, std::string> of;  // fields, and whether they are conditional
  std::set<int64_t> evidence;             // numbers of the nodes that they can rest on

  explicit NumberedAnswers(const Graph& graph) {
    const ProfileIndex index(graph);
    auto note = [&](Node* node, int64_t at) {
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        // Constants that are equal are made one: another value, which more nodes speak of.
        if (behindProfiles(node->input(i))->node()->kind() == torch::jit::prim::Constant) continue;
        const ProfileKnown known = index.known(Use(node, i));
        of[{at, i}] = known.type == nullptr ? "" : writeType(*known.type) + (known.conditional ? "?" : "");
      }
    };
    eachNode(graph, [&](Node* node) {
      // A subgraph's operands are listed anew when something joins it: they are not the uses they were.
      if (!node->hasAttribute(numberMark()) || node->hasAttribute(torch::jit::attr::Subgraph)) return;
      const int64_t at = node->i(numberMark());
      if (node->kind() != torch::jit::prim::profile) {
        note(node, at);
      } else if (isEvidence(*node)) {
        evidence.insert(at);
      }
    });
    note(const_cast<Graph&>(graph).return_node(), -1);
  }
};

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

// Up to `length` nodes in a row at a time as one subgraph, in each block: nothing is moved. (libtorch
// dissolves a subgraph that joins another: these stay out.)
void groupRuns(const std::shared_ptr<Graph>& graph, size_t length) {
  std::vector<std::vector<Node*>> runs(1);
  const torch::jit::Block* block = nullptr;
  eachNode(*graph, [&](Node* node) {
    const bool fits = node->blocks().empty() && node->kind() != torch::jit::prim::Constant &&
                      !node->hasAttribute(torch::jit::attr::Subgraph) && node->owningGraph() == graph.get();
    if (!fits || node->owningBlock() != block || runs.back().size() == length) runs.emplace_back();
    block = node->owningBlock();
    if (fits) runs.back().push_back(node);
  });
  for (const std::vector<Node*>& run : runs) {
    if (run.size() < 2) continue;
    namespace utils = torch::jit::SubgraphUtils;
    Node* group = utils::createSingletonSubgraph(run.back(), torch::jit::prim::FunctionalGraph);
    for (size_t i = run.size() - 1; i-- > 0;) utils::mergeNodeIntoSubgraph(run[i], group);
  }
}

// Every n-th node that is evidence goes, as a pass may take it: clones answer alone then.
void dropEvidence(Graph& graph, size_t every) {
  std::vector<Node*> going;
  size_t seen = 0;
  eachNode(graph, [&](Node* node) {
    const bool evidence = isEvidence(*node) && node->inputs().size() == 1 && node->outputs().size() == 1;
    if (evidence && seen++ % every == 0) going.push_back(node);
  });
  for (Node* node : going) {
    node->output()->replaceAllUsesWith(node->input());
    node->destroy();
  }
}

// What stands at the feed of a use goes with it into a subgraph, and is heard outside of one. Asked of every
// use whose node and value are there afterwards.
RC_GTEST_PROP(ProfileProperties, SubgraphsChangeNoAnswer, ()) {
  const DrawnCase drawn = *drawnCases(withProfiles());
  auto grouped = propagated(*drawn.value.graph);
  dropEvidence(*grouped, *rc::gen::element<size_t>(1, 2, 1000));
  number(*grouped);
  const NumberedAnswers before(*grouped);
  groupRuns(grouped, *rc::gen::inRange<size_t>(2, 8));
  const NumberedAnswers after(*grouped);
  for (const auto& [use, answer] : after.of) {
    const auto had = before.of.find(use);
    if (had == before.of.end()) continue;
    RC_LOG() << "input " << use.second << " of " << use.first << ": '" << had->second << "', then '" << answer
             << "'\n";
    RC_ASSERT(answer == had->second);
  }
}

bool writes(const Graph& graph) {
  bool found = false;
  eachNode(graph, [&](const Node* node) {
    const torch::jit::FunctionSchema* schema = node->maybeSchema();
    found = found || (schema != nullptr && schema->is_mutable());
  });
  return found;
}

// Neither when libtorch's passes do it. They move nodes, and change what some programs do by that, which are
// none of this: programs that write, since reads are moved over writes that may reach them (a Loop without a
// trip returns what it was given, dropout may return its argument, and libtorch knows neither); and for
// CreateFunctionalGraphs those that set the grad mode, since ops are moved to its other side. They remove
// evidence that nothing uses: an answer may then know more, as when one of two nodes that differed is gone,
// but is there. Profiles are those of a run: nodes of one tensor that do not agree, as no run makes them,
// speak by who stands nearer. A pass that throws leaves no graph to ask of.
RC_GTEST_PROP(ProfileProperties, SubgraphCreationLosesNoAnswer, ()) {
  const DrawnCase drawn = *drawnCases();
  RC_PRE(!writes(*drawn.value.graph));
  const GlobalStateCheck state;
  const auto sample = sampleOfCase(drawn.value);
  state.restore();
  RC_PRE(sample.has_value());
  number(*sample->graph);
  const NumberedAnswers before(*sample->graph);
  for (const bool autodiff : {true, false}) {
    if (!autodiff && writeGraph(*sample->graph).find("set_grad_enabled") != std::string::npos) continue;
    auto grouped = sample->graph->copy();
    try {
      if (autodiff) {
        torch::jit::CreateAutodiffSubgraphs(grouped, 2);
      } else {
        torch::jit::CreateFunctionalGraphs(grouped);
      }
    } catch (const std::exception&) {
      continue;
    }
    const NumberedAnswers after(*grouped);
    for (const auto& [use, answer] : after.of) {
      const auto had = before.of.find(use);
      if (had == before.of.end()) continue;
      RC_LOG() << (autodiff ? "autodiff " : "functional ") << use.first << ' ' << use.second << ": '"
               << had->second << "', then '" << answer << "'\n";
      const bool same_evidence = after.evidence == before.evidence;
      const bool holds = same_evidence ? answer == had->second : had->second.empty() || !answer.empty();
      RC_ASSERT(holds);
    }
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
