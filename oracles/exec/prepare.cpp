#include "oracles/exec/prepare.h"

#include <functional>
#include <sstream>

#include <fmt/format.h>

#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

bool isProfileNode(const Node* node) {
  return node->kind() == torch::jit::prim::profile || node->kind() == torch::jit::prim::profile_ivalue;
}

void stripProfileNodes(Block* block) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it;
    ++it;
    for (Block* inner : node->blocks()) stripProfileNodes(inner);
    if (!isProfileNode(node)) continue;
    for (size_t i = 0; i < node->outputs().size() && i < node->inputs().size(); ++i) {
      node->outputs()[i]->replaceAllUsesWith(node->inputs()[i]);
    }
    node->destroy();
  }
}

void forgetTensorTypes(Block* block) {
  auto forget = [](Value* value) {
    if (value->type()->kind() == c10::TypeKind::TensorType) value->setType(c10::TensorType::get());
  };
  for (Value* input : block->inputs()) forget(input);
  for (Node* node : block->nodes()) {
    for (Value* output : node->outputs()) forget(output);
    for (Block* inner : node->blocks()) forgetTensorTypes(inner);
  }
}

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The copy of the case's graph before anything was inlined, node by node the same as `copy`.
void pairNodes(const Block* from, Block* to, std::unordered_map<const Node*, Node*>& pairs) {
  auto a = from->nodes().begin();
  auto b = to->nodes().begin();
  for (; a != from->nodes().end() && b != to->nodes().end(); ++a, ++b) {
    pairs[*a] = *b;
    for (size_t i = 0; i < (*a)->blocks().size(); ++i) pairNodes((*a)->blocks()[i], (*b)->blocks()[i], pairs);
  }
}

// Nodes of `graph` that stripping and inlining will delete; names that point at them have no heir.
bool willVanish(const Node* node) {
  return isProfileNode(node) || node->hasAttribute(torch::jit::attr::Subgraph);
}

}  // namespace

void stripProfileNodes(torch::jit::Graph& graph) { stripProfileNodes(graph.block()); }

bool planIsSupported(const Plan& plan) { return plan.passes.empty() && plan.ranks == 1; }

Result<PreparedCase> prepareCase(const Case& c) {
  PreparedCase prepared;
  prepared.graph = cloneGraph(*c.graph);
  bool has_seams = false;
  for (const HookSpec& hook : c.plan.hooks) {
    if (hook.seam.empty()) {
      if (hook.input >= c.graph->inputs().size()) {
        return fail(ErrorKind::Unsupported,
                    fmt::format("hook on input {} of a graph with {}", hook.input, c.graph->inputs().size()));
      }
      prepared.input_hooks.push_back(hook);
    } else {
      has_seams = true;
    }
  }
  if (has_seams) {
    const NodeNames names(*prepared.graph);
    for (const HookSpec& hook : c.plan.hooks) {
      if (hook.seam.empty()) continue;
      Node* producer = names.find(hook.seam);
      if (producer == nullptr || producer->outputs().empty() || willVanish(producer)) {
        return fail(ErrorKind::Unsupported, "no value to hook is called " + hook.seam);
      }
      prepared.seam_hooks.push_back({hook.kind, hook.seam, producer, hook.action});
    }
  }
  inlineSubgraphs(*prepared.graph);
  stripProfileNodes(*prepared.graph);
  return prepared;
}

Result<BreakPolicy> readBreakPolicy(const Case& c, const PreparedCase& prepared) {
  const std::vector<std::string> words = wordsOf(c.plan.breaks);
  if (words.empty() || words[0] != "after") {
    auto policy = BreakPolicy::read(c.plan.breaks);
    if (!policy) return fail(ErrorKind::Unsupported, "nothing acts on breaks: " + policy.error().message);
    return policy;
  }
  std::vector<std::string> names(words.begin() + 1, words.end());
  // Inlining and stripping renumber ops only where there is something to inline.
  const NodeNames before(*c.graph);
  const NodeNames now(*prepared.graph);
  if (before.all() == now.all()) return BreakPolicy::after(std::move(names));
  auto copy = c.graph->copy();
  std::unordered_map<const Node*, Node*> pairs;
  pairNodes(c.graph->block(), copy->block(), pairs);
  std::vector<Node*> targets;
  for (const std::string& name : names) {
    const Node* node = before.find(name);
    if (node == nullptr || willVanish(node)) {
      return fail(ErrorKind::Unsupported, "no op to break after is called " + name);
    }
    targets.push_back(pairs.at(node));
  }
  inlineSubgraphs(*copy);
  stripProfileNodes(*copy);
  const NodeNames renamed(*copy);
  for (size_t i = 0; i < names.size(); ++i) names[i] = renamed.of(targets[i]);
  return BreakPolicy::after(std::move(names));
}

void settleTypes(torch::jit::Graph& graph, const std::vector<CaseRun>& runs) {
  bool flips = false;
  for (const CaseRun& run : runs) flips |= run.inputs != runs[0].inputs || run.grad_mode != runs[0].grad_mode;
  if (flips) forgetTensorTypes(graph.block());
  for (size_t i = 0; i < graph.inputs().size() && !runs.empty(); ++i) {
    bool same = true;
    for (const CaseRun& run : runs) {
      same &= i < run.inputs.size() && run.inputs[i] == runs[0].inputs[i];
    }
    if (!same) continue;
    const InputSpec& own = runs[0].inputs[i];
    const InputSpec& spec = own.kind == InputSpec::Kind::SameAs ? runs[0].inputs[own.same_as] : own;
    if (spec.kind == InputSpec::Kind::Tensor) graph.inputs()[i]->setType(inputType(spec, /*complete=*/true));
  }
}

}  // namespace faultline
