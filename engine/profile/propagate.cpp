// Clones at the uses: after this every answer stands at the direct feed of its use.
#include <map>

#include "engine/profile/explain.h"
#include "engine/support/check.h"
#include "faultline/profile.h"

namespace faultline {
namespace {

using profile::Analysis;
using profile::Answer;
using profile::FactId;
using profile::FlowProgram;
using profile::Step;
using profile::StepKind;

namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

// Uses that read the same value in one block, in one epoch, with one answer, share a clone.
struct CloneKey {
  const Value* value;
  const torch::jit::Block* block;
  FactId fact;
  bool conditional;
  std::array<int32_t, 3> epochs;
  auto operator<=>(const CloneKey&) const = default;
};

struct Request {
  Value* value;
  Node* before;        // the clone stands right before its first user
  const Node* source;  // the evidence that is cloned
  c10::TensorTypePtr type;
  profile::Fact fact;
  bool conditional;
  std::vector<std::pair<Node*, size_t>> uses;
};

Node* makeClone(Graph& graph, const Request& request) {
  // A clone of a stock node keeps what libtorch hung on it, and with it an instrumented graph still runs.
  Node* clone = request.source != nullptr ? graph.createClone(const_cast<Node*>(request.source),
                                                              [&](Value*) { return request.value; })
                                          : graph.create(prim::profile, {request.value});
  for (c10::Symbol name : {profile::mark::inside(), profile::mark::raw(), profile::mark::conditional()}) {
    if (clone->hasAttribute(name)) clone->removeAttribute(name);
  }
  clone->i_(profile::mark::clone(), 1);
  if (request.conditional) clone->i_(profile::mark::conditional(), 1);
  profile::writeFact(clone, request.fact, request.type);
  clone->output()->setType(request.value->type());
  return clone;
}

// Per root the node that is cloned: which one matters only to libtorch, which lets no node run that it did
// not make.
std::vector<const Node*> sourcesOf(const Analysis& analysis) {
  const auto& seen = analysis.observations();
  std::vector<const Node*> sources(analysis.objects().roots().size(), seen.empty() ? nullptr : seen[0].node);
  for (size_t i = seen.size(); i-- > 0;) sources[static_cast<size_t>(seen[i].root)] = seen[i].node;
  return sources;
}

std::vector<Request> requestsFor(const Analysis& analysis) {
  std::vector<Request> requests;
  const std::vector<const Node*> sources = sourcesOf(analysis);
  std::map<CloneKey, size_t> shared;
  const int32_t count = static_cast<int32_t>(analysis.program().steps().size());
  for (int32_t i = 0; i < count; ++i) {
    const Step& step = analysis.program().step(i);
    if (step.kind == StepKind::Close || step.kind == StepKind::CallEnd || step.kind == StepKind::BlockBegin)
      continue;
    if (profile::isTransparent(step.node)) continue;
    for (size_t offset = 0; offset < step.node->inputs().size(); ++offset) {
      const Value* value = step.node->input(offset);
      const profile::Ref ref = analysis.objects().ref(value);
      if (ref.kind != profile::RefKind::Tensor) continue;
      const Answer answer = analysis.answer(value, i);
      const c10::TensorTypePtr& type = analysis.typeOf(answer.fact);
      if (type == nullptr || profile::feedSays(analysis, value, i, answer)) continue;
      CloneKey key{value, step.place, answer.fact, answer.conditional, {-1, -1, -1}};
      for (size_t f = 0; f < analysis.flows().size(); ++f) {
        key.epochs[f] = analysis.flows()[f]->epoch(ref.id, FlowProgram::before(i));
      }
      auto [it, fresh] = shared.try_emplace(key, requests.size());
      if (fresh) {
        requests.push_back({const_cast<Value*>(value),
                            const_cast<Node*>(step.node),
                            sources[static_cast<size_t>(ref.id)],
                            type,
                            analysis.pool()[answer.fact],
                            answer.conditional,
                            {}});
      }
      requests[it->second].uses.emplace_back(const_cast<Node*>(step.node), offset);
    }
  }
  return requests;
}

}  // namespace

void propagateProfileNode(std::shared_ptr<Graph> graph) {
  FAULTLINE_CHECK(graph != nullptr, "propagateProfileNode needs a graph");
  std::vector<Request> requests;
  {
    const Analysis analysis(*graph);
    requests = requestsFor(analysis);
  }
  for (const Request& request : requests) {
    Node* clone = makeClone(*request.before->owningGraph(), request);
    clone->insertBefore(request.before);
    for (const auto& [user, offset] : request.uses) user->replaceInput(offset, clone->output());
  }
}

}  // namespace faultline
