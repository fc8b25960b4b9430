#include "oracles/exec/profile_case.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "faultline/ir.h"
#include "generators/choices/choices.h"

namespace faultline {
namespace {

namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;
using torch::jit::Block;
using torch::jit::Value;

bool isProfileNode(const Node* node) {
  return node->kind() == prim::profile || node->kind() == prim::profile_ivalue;
}

// Ours, and not the engine's, since that is under test. Subgraphs are entered.
template <class Goes>
void dropProfileNodes(Block* block, const Goes& goes) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it;
    ++it;
    for (Block* inner : node->blocks()) dropProfileNodes(inner, goes);
    if (node->hasAttribute(attr::Subgraph)) dropProfileNodes(node->g(attr::Subgraph)->block(), goes);
    if (!isProfileNode(node) || !goes(node)) continue;
    for (size_t i = 0; i < node->outputs().size() && i < node->inputs().size(); ++i) {
      node->outputs()[i]->replaceAllUsesWith(node->inputs()[i]);
    }
    node->destroy();
  }
}

bool hasProfileNodes(const Block* block) {
  for (const Node* node : block->nodes()) {
    if (isProfileNode(node)) return true;
    if (node->hasAttribute(attr::Subgraph) && hasProfileNodes(node->g(attr::Subgraph)->block())) return true;
    for (const Block* inner : node->blocks()) {
      if (hasProfileNodes(inner)) return true;
    }
  }
  return false;
}

std::vector<Use> plainUses(const Graph& graph) {
  std::vector<Use> uses = profileSites(graph);
  uses.erase(std::remove_if(uses.begin(), uses.end(), [](const Use& use) { return isProfileNode(use.user); }),
             uses.end());
  return uses;
}

std::string placeOf(const Use& use) {
  return fmt::format("{}, operand {} (%{})", use.user->kind().toQualString(), use.offset,
                     use.user->input(use.offset)->debugName());
}

const char* blockOf(const Use& use, const Graph& top) {
  const Block* block = use.user->owningBlock();
  const Node* owner = block->owningNode();
  if (owner == nullptr) return use.user->owningGraph() == &top ? "top" : "subgraph";
  return owner->kind() == prim::If ? "if" : owner->kind() == prim::Loop ? "loop" : "subgraph";
}

template <class T>
std::optional<T> knownOf(const ProfileField<T>& field) {
  return field.known() ? std::optional<T>(field.value) : std::nullopt;
}

ProfileAnswerTrace answerOf(const ProfileLookup& lookup) {
  ProfileAnswerTrace answer;
  answer.state = toString(lookup.state);
  answer.conditional = lookup.conditional;
  answer.answered = lookup.type != nullptr;
  answer.fact.defined = knownOf(lookup.defined);
  answer.fact.dtype = knownOf(lookup.dtype);
  answer.fact.device = knownOf(lookup.device);
  answer.fact.rank = knownOf(lookup.rank);
  for (const auto& size : lookup.sizes) answer.fact.sizes.push_back(knownOf(size));
  for (const auto& stride : lookup.strides) answer.fact.strides.push_back(knownOf(stride));
  answer.fact.requires_grad = knownOf(lookup.requires_grad);
  return answer;
}

// What stands on a node, read off its type by hand.
ProfileClaimTrace claimOf(const Node* node) {
  ProfileClaimTrace claim;
  claim.at = "%" + node->input(0)->debugName();
  claim.raw = node->hasAttribute(c10::Symbol::attr("faultline_raw"));
  if (!node->hasAttribute(attr::profiled_type)) return claim;
  const auto type = node->ty(attr::profiled_type)->cast<c10::TensorType>();
  if (type == nullptr) return claim;
  const auto mark = c10::Symbol::attr("faultline_fields");
  auto spoken = [&](const char* field) {
    if (!node->hasAttribute(mark)) return true;
    const auto& fields = node->ss(mark);
    return std::find(fields.begin(), fields.end(), field) != fields.end();
  };
  claim.unseen = *type == *c10::TensorType::get() && !node->hasAttribute(mark);
  if (claim.unseen) return claim;
  FactTrace& fact = claim.fact;
  if (spoken("defined") && type->undefined()) fact.defined = !*type->undefined();
  if (type->undefined() == true) return claim;
  if (spoken("dtype")) fact.dtype = type->scalarType();
  if (spoken("device")) fact.device = type->device();
  if (spoken("requires_grad") && !node->hasAttribute(c10::Symbol::attr("faultline_inside"))) {
    fact.requires_grad = type->requiresGrad();
  }
  if (!spoken("rank") || !type->dim()) return claim;
  fact.rank = type->dim();
  auto dimensions = [&](const c10::VaryingShape<int64_t>& shape, const char* field) {
    std::vector<std::optional<int64_t>> values(*fact.rank);
    for (size_t i = 0; i < *fact.rank && spoken(field) && shape.size() == fact.rank; ++i)
      values[i] = shape[i];
    return values;
  };
  fact.sizes = dimensions(type->sizes(), "sizes");
  fact.strides = dimensions(type->strides(), "strides");
  return claim;
}

// Made where control flow meets: by an If or Loop, or carried into a loop's body.
bool isJoined(const Value* value) {
  const Node* maker = value->node();
  return !maker->blocks().empty() ||
         (maker->kind() == prim::Param && maker->owningBlock()->owningNode() != nullptr);
}

bool writes(const Node* node) {
  const std::string name = node->kind().toQualString();
  return node->kind().is_aten() && name.back() == '_';
}

// Of all blocks and subgraphs.
std::vector<Node*> allNodes(Graph& graph) {
  std::vector<Node*> nodes;
  std::vector<Block*> open = {graph.block()};
  while (!open.empty()) {
    Block* block = open.back();
    open.pop_back();
    for (Node* node : block->nodes()) {
      nodes.push_back(node);
      if (node->hasAttribute(attr::Subgraph)) open.push_back(node->g(attr::Subgraph)->block());
      for (Block* inner : node->blocks()) open.push_back(inner);
    }
  }
  return nodes;
}

// The use right behind a node: what arrives there is what arrived at the node.
const Node* firstUser(const Node* node) {
  const Node* next = node->next();
  while (next->kind() == prim::profile || next->kind() == prim::Constant) next = next->next();
  return next;
}

const Value* behindProfileNodes(const Value* value) {
  while (value->node()->kind() == prim::profile && value->node()->inputs().size() == 1) {
    value = value->node()->input();
  }
  return value;
}

std::vector<std::string> kindsOf(const std::vector<ProfileFinding>& findings) {
  std::vector<std::string> kinds;
  for (const ProfileFinding& finding : findings) kinds.push_back(finding.kind);
  return kinds;
}

void forgetEverything(Block* block) {
  for (Node* node : block->nodes()) {
    if (node->kind() == prim::profile && node->hasAttribute(attr::profiled_type)) {
      for (const c10::Symbol name : node->attributeNames()) node->removeAttribute(name);
      node->ty_(attr::profiled_type, c10::TensorType::get());
    }
    if (node->hasAttribute(attr::Subgraph)) forgetEverything(node->g(attr::Subgraph)->block());
    for (Block* inner : node->blocks()) forgetEverything(inner);
  }
}

// A graph whose nodes never ran has no answers.
void askUnseen(const Graph& graph, const ProfilePasses& passes, ProfileTrace& trace) {
  auto unseen = const_cast<Graph&>(graph).copy();
  forgetEverything(unseen->block());
  const std::vector<Use> uses = plainUses(*unseen);
  const std::vector<ProfileLookup> lookups = passes.lookup(*unseen, uses);
  trace.unseen_tried = true;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (lookups[i].type != nullptr) trace.answers_of_unseen.push_back(placeOf(uses[i]));
  }
}

}  // namespace

ProfiledCase profiledCase(const Case& c, const PreparedCase& prepared) {
  // What a program does to its constants is seen by later runs of this lane, and by no other lane.
  auto graph = cloneGraph(*c.graph);
  if (!prepared.seam_hooks.empty()) {
    const NodeNames names(*graph);
    std::vector<SeamHook> hooks = prepared.seam_hooks;
    for (SeamHook& hook : hooks) hook.producer = names.find(hook.seam);
    insertSeamNodes(*graph, hooks);
  }
  ProfiledCase result;
  if (!hasProfileNodes(graph->block())) {
    result.plain = std::move(graph);
    return result;
  }
  result.plain = graph->copy();
  dropProfileNodes(result.plain->block(), [](const Node*) { return true; });
  if (c.plan.profile == "keep") result.kept = std::move(graph);
  return result;
}

std::shared_ptr<Graph> withSomeProfileNodes(const Graph& plain, const Recording& recording, uint64_t seed) {
  auto graph = withProfileNodes(plain, recording);
  Random random(mixSeed(seed, 0x9f0f11e));
  // With a node at every use there is nothing to find out: each rule of what may be concluded is left alone
  // with its answers in some cases.
  enum class Left : uint8_t { Few, Half, AllButJoins, FirstOfEach };
  std::vector<Left> ways = {Left::Few, Left::Half};
  const auto nodes = allNodes(*graph);
  if (std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return !node->blocks().empty(); }))
    ways.insert(ways.end(), {Left::AllButJoins, Left::AllButJoins, Left::AllButJoins});
  if (std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return writes(node); }))
    ways.insert(ways.end(), {Left::FirstOfEach, Left::FirstOfEach, Left::FirstOfEach});
  switch (ways[random.below(ways.size())]) {
    case Left::Few:
      dropProfileNodes(graph->block(), [&](const Node*) { return random.below(100) >= 15; });
      break;
    case Left::Half:
      dropProfileNodes(graph->block(), [&](const Node*) { return random.below(100) >= 50; });
      break;
    case Left::AllButJoins:
      dropProfileNodes(graph->block(), [](const Node* node) { return isJoined(node->input(0)); });
      break;
    case Left::FirstOfEach: {
      std::unordered_set<const Value*> seen;
      dropProfileNodes(graph->block(), [&](const Node* node) {
        const Value* value = behindProfileNodes(node->input(0));
        return writes(value->node()) || !seen.insert(value).second;
      });
      break;
    }
  }
  return graph;
}

ProfileTrace traceProfile(const std::shared_ptr<Graph>& graph, const ProfilePasses& passes,
                          std::shared_ptr<Graph>& removed) {
  ProfileTrace trace;
  const std::vector<Use> uses = plainUses(*graph);
  for (const ProfileLookup& lookup : passes.lookup(*graph, uses)) {
    trace.uses.push_back({{}, answerOf(lookup), {}, {}});
    if (lookup.type == nullptr) trace.uses.back().why_not = toString(lookup.why_not.kind);
  }
  std::unordered_map<const Node*, std::vector<size_t>> uses_of;
  for (size_t i = 0; i < uses.size(); ++i) {
    trace.uses[i].at = placeOf(uses[i]);
    trace.uses[i].place = blockOf(uses[i], *graph);
    uses_of[uses[i].user].push_back(i);
  }
  bool any_unseen = false;
  for (const Use& use : profileSites(*graph)) {
    if (use.user->kind() != prim::profile || use.user->outputs().size() != 1) continue;
    trace.claims.push_back(claimOf(use.user));
    any_unseen = any_unseen || trace.claims.back().unseen;
    // Which use shows what the node got: by number, since runs come later.
    const Value* value = behindProfileNodes(use.user->output());
    for (size_t i : uses_of[firstUser(use.user)]) {
      if (behindProfileNodes(uses[i].user->input(uses[i].offset)) == value) trace.claims.back().site = i;
    }
  }
  if (any_unseen) askUnseen(*graph, passes, trace);
  auto unpropagated = graph->copy();

  passes.propagate(graph);
  trace.propagated = writeGraph(*graph);
  const std::vector<ProfileLookup> after = passes.lookup(*graph, uses);
  for (size_t i = 0; i < uses.size(); ++i) trace.uses[i].after = answerOf(after[i]);
  trace.findings_after = kindsOf(findProfileViolations(*graph));
  if (auto verified = verifyGraph(*graph); !verified) trace.verify_error = verified.error().str();
  auto again = graph->copy();
  passes.propagate(again);
  trace.propagated_again = writeGraph(*again);
  removed = graph->copy();
  passes.remove(*removed);
  trace.removed = writeGraph(*removed);
  // Only where there is something to excuse.
  if (!trace.findings_after.empty()) trace.findings_before = kindsOf(findProfileViolations(*unpropagated));
  passes.remove(*unpropagated);
  trace.removed_unpropagated = writeGraph(*unpropagated);
  if (auto verified = verifyGraph(*removed); !verified) trace.verify_error = verified.error().str();
  return trace;
}

void addSeen(ProfileTrace& trace, const std::vector<Recording>& recordings) {
  for (const Recording& recording : recordings) {
    for (const RecordedRun& run : recording.runs) {
      for (size_t i = 0; i < trace.uses.size() && i < run.sites.size(); ++i) {
        trace.uses[i].seen.push_back(run.sites[i]);
      }
    }
  }
}

}  // namespace faultline
