// Clones at the uses: after this every answer stands at the direct feed of its use.
#include "engine/ir/uses.h"
#include "engine/profile/explain.h"
#include "engine/support/check.h"
#include "engine/support/prefetch.h"
#include "faultline/profile.h"

namespace faultline {
namespace {

using profile::Analysis;
using profile::Answer;
using profile::FactId;
using profile::FlowProgram;
using profile::Step;
using profile::StepKind;

namespace prim = torch::jit::prim;

// Uses that read the same value in one block, in one epoch, with one answer, share a clone.
struct CloneKey {
  const Value* value;
  const torch::jit::Block* block;
  FactId fact;
  std::array<int32_t, 3> epochs;
  bool operator==(const CloneKey&) const = default;
};

struct CloneKeyHash {
  size_t operator()(const CloneKey& key) const {
    size_t hash = std::hash<const void*>()(key.value) ^ (std::hash<const void*>()(key.block) << 1);
    for (int32_t part : {key.fact, key.epochs[0], key.epochs[1], key.epochs[2]})
      hash = hash * 0x9e3779b97f4a7c15ull + static_cast<uint32_t>(part);
    return hash;
  }
};

struct Request {
  Value* value;
  Node* before;  // the clone stands right before its first user
  int32_t root;
  FactId fact;
  bool conditional;
};

struct Rewire {
  Use use;
  size_t request;
};

struct Plan {
  std::vector<Request> requests;
  std::vector<Rewire> uses;  // in program order
};

Node* makeClone(const Analysis& analysis, const Request& request, const profile::ProfileNode* source) {
  Graph& graph = *request.before->owningGraph();
  // A clone of a stock node keeps what libtorch hung on it, and with it an instrumented graph still runs.
  Node* clone = source != nullptr ? graph.createClone(const_cast<Node*>(source->node),
                                                      [&](Value*) { return request.value; })
                                  : graph.create(prim::profile, {request.value});
  if (source != nullptr) {
    if (source->marks.inside) clone->removeAttribute(profile::mark::inside());
    if (source->marks.raw) clone->removeAttribute(profile::mark::raw());
    if (source->marks.conditional) clone->removeAttribute(profile::mark::conditional());
  }
  clone->i_(profile::mark::clone(), 1);
  if (request.conditional) clone->i_(profile::mark::conditional(), 1);
  profile::writeFact(clone, analysis.pool()[request.fact], analysis.typeOf(request.fact));
  clone->output()->setType(request.value->type());
  return clone;
}

// Per root the node that is cloned: which one matters only to libtorch, which lets no node run that it did
// not make.
std::vector<const profile::ProfileNode*> sourcesOf(const Analysis& analysis) {
  const auto& seen = analysis.observations();
  std::vector<const profile::ProfileNode*> sources(
      analysis.objects().roots().size(), seen.empty() ? nullptr : analysis.profileNode(seen[0].node));
  for (size_t i = seen.size(); i-- > 0;)
    sources[static_cast<size_t>(seen[i].root)] = analysis.profileNode(seen[i].node);
  return sources;
}

Plan planOf(const Analysis& analysis) {
  Plan plan;
  ska::flat_hash_map<CloneKey, size_t, CloneKeyHash> shared;
  shared.reserve(analysis.profileNodes().size());
  const int32_t count = static_cast<int32_t>(analysis.program().steps().size());
  for (int32_t i = 0; i < count; ++i) {
    if (i + 2 * kAhead < count) prefetch(analysis.program().step(i + 2 * kAhead).node);
    if (i + kAhead < count) __builtin_prefetch(analysis.program().step(i + kAhead).node->inputs().data());
    const Step& step = analysis.program().step(i);
    if (!profile::readsOperands(step.kind) || step.transparent) continue;
    const size_t inputs = analysis.objects().operandCount(i);
    for (size_t offset = 0; offset < inputs; ++offset) {
      const profile::Ref ref = analysis.objects().operands(i)[offset].ref;
      if (ref.kind != profile::RefKind::Tensor) continue;
      const Answer answer = analysis.answer(i, offset);
      if (analysis.typeOf(answer.fact) == nullptr || profile::feedSays(analysis, i, offset, answer)) continue;
      const Value* value = step.node->input(offset);
      CloneKey key{value, step.place, answer.fact, {-1, -1, -1}};
      for (size_t f = 0; f < analysis.flows().size(); ++f)
        key.epochs[f] = analysis.flows()[f]->epoch(ref.id, FlowProgram::before(i));
      auto it = shared.find(key);
      if (it == shared.end()) {
        it = shared.emplace(key, plan.requests.size()).first;
        plan.requests.push_back({const_cast<Value*>(value), const_cast<Node*>(step.node), ref.id, answer.fact,
                                 answer.conditional});
      }
      plan.uses.push_back({Use(const_cast<Node*>(step.node), offset), it->second});
    }
  }
  return plan;
}

}  // namespace

void propagateProfileNode(std::shared_ptr<Graph> graph) {
  FAULTLINE_CHECK(graph != nullptr, "propagateProfileNode needs a graph");
  const Analysis analysis(*graph);  // of the graph as it is now; only its tables are used below
  const Plan plan = planOf(analysis);
  const auto sources = sourcesOf(analysis);

  // Before there are clones: these are uses too, and would have to be sorted in.
  UseSplitter splitter;
  for (const Rewire& rewire : plan.uses) splitter.split(rewire.use.user->input(rewire.use.offset));
  std::vector<Value*> replacements;
  replacements.reserve(plan.requests.size());
  for (size_t i = 0; i < plan.requests.size(); ++i) {
    if (i + kAhead < plan.requests.size()) {
      prefetch(plan.requests[i + kAhead].before);
      prefetch(plan.requests[i + kAhead].value);
    }
    const Request& request = plan.requests[i];
    Node* clone = makeClone(analysis, request, sources[static_cast<size_t>(request.root)]);
    clone->insertBefore(request.before);
    replacements.push_back(clone->output());
  }
  for (size_t i = 0; i < plan.uses.size(); ++i) {
    if (i + kAhead < plan.uses.size()) prefetch(plan.uses[i + kAhead].use.user);
    const Use& use = plan.uses[i].use;
    use.user->replaceInput(use.offset, replacements[plan.uses[i].request]);
  }
}

}  // namespace faultline
