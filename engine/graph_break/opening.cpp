#include "engine/graph_break/opening.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/autodiff/differentiability.h"
#include "engine/ir/walk.h"

namespace faultline {

namespace {

using torch::jit::Block;
namespace prim = torch::jit::prim;

bool isOpenable(const Node* node) { return node->kind() == prim::If || node->kind() == prim::Loop; }

size_t opsIn(const Node* node) {
  size_t count = 0;
  for (const Block* block : node->blocks()) {
    forEachNode(block, [&](const Node* inner) { count += isConstantLike(inner) ? 0 : 1; });
  }
  return count;
}

class Opening {
 public:
  explicit Opening(const WorkingCopy& work) : work_(work) {}

  // What `node` stands in; nothing where one of it cannot be opened.
  void openAround(const Node* node) {
    std::vector<const Node*> owners;
    for (const Block* block = node->owningBlock(); block != work_.graph->block();
         block = owners.back()->owningBlock()) {
      owners.push_back(block->owningNode());
      if (!isOpenable(owners.back())) {
        return;
      }
    }
    for (auto owner = owners.rbegin(); owner != owners.rend(); ++owner) {
      const std::string& name = work_.names.of(*owner);
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
        names_.push_back(name);
      }
    }
  }

  template <class Matches>
  void openAroundAll(Matches matches) {
    forEachNode(work_.graph->block(), [&](const Node* node) {
      if (node->owningBlock() != work_.graph->block() && !isConstantLike(node) && matches(node)) {
        openAround(node);
      }
    });
  }

  std::vector<std::string> names() && { return std::move(names_); }

 private:
  const WorkingCopy& work_;
  std::vector<std::string> names_;
};

}  // namespace

Result<std::vector<std::string>> blocksToOpen(const WorkingCopy& work, const BreakPolicy& policy) {
  Opening opening(work);
  switch (policy.kind()) {
    case BreakPolicy::Kind::After:
      for (const std::string& name : policy.names()) {
        const Node* node = work.names.find(name);
        if (node && !isConstantLike(node)) {
          opening.openAround(node);
        }
      }
      break;
    case BreakPolicy::Kind::Markers:
      for (const Node* node : markedInside(work)) {
        opening.openAround(node);
      }
      break;
    case BreakPolicy::Kind::Every:
      if (policy.cutsInside()) {
        opening.openAroundAll([&](const Node* node) {
          const Node* owner = node->owningBlock()->owningNode();
          return isOpenable(owner) && opsIn(owner) > policy.count();
        });
      }
      break;
    case BreakPolicy::Kind::Kinds:
      if (policy.cutsInside()) {
        opening.openAroundAll([&](const Node* node) { return isOfKind(node, policy.names()); });
      }
      break;
    case BreakPolicy::Kind::Predicate:
      if (policy.cutsInside() && policy.accepts()) {
        opening.openAroundAll([&](const Node* node) { return policy.accepts()(*node); });
      }
      break;
    default:
      if (policy.cutsInside()) {
        return fail(
            ErrorKind::Invalid,
            "cuts inside Ifs and Loops can be asked for with every, kinds and predicates; after and markers "
            "make them by themselves, other policies cannot");
      }
  }
  return std::move(opening).names();
}

std::vector<Wish> forcedCuts(const GraphFacts& facts) {
  const WorkingCopy& work = facts.work;
  std::vector<Wish> cuts;
  for (size_t i = 0; i < work.nodes.size(); ++i) {
    if (!work.opened[i]) {
      continue;
    }
    const std::string& name = work.nameOf(i);
    const char* reason = "{} is opened for a cut inside it";
    for (const Block* block : work.nodes[i]->blocks()) {
      cuts.push_back({work.beginOf(block), name, fmt::format(fmt::runtime(reason), name)});
      reason = "{}: what the condition chooses is a piece of its own";
    }
    cuts.push_back({i, name, fmt::format("{} ends", name)});
    cuts.push_back({i + 1, name, fmt::format("{} ends", name)});
  }
  return cuts;
}

size_t pieceBegin(const WorkingCopy& work, size_t before, size_t end) {
  if (!work.opensAny() || end == before) {
    return before;
  }
  size_t begin = end;
  while (begin > before && !work.opened[begin - 1] &&
         work.nodes[begin - 1]->owningBlock() == work.nodes[end - 1]->owningBlock()) {
    --begin;
  }
  return begin;
}

bool fits(const BreakPlan& plan, const WorkingCopy& work) {
  if (plan.ends.empty() || !std::is_sorted(plan.ends.begin(), plan.ends.end()) ||
      plan.ends.back() > work.nodes.size()) {
    return false;
  }
  if (!work.opensAny()) {
    return plan.ends.back() == work.nodes.size();
  }
  std::vector<bool> held(work.nodes.size(), false);
  size_t before = 0;
  for (const size_t end : plan.ends) {
    for (size_t i = pieceBegin(work, before, end); i < end; ++i) {
      held[i] = true;
    }
    before = end;
  }
  for (size_t i = 0; i < held.size(); ++i) {
    if (!held[i] && !work.constant[i] && !work.opened[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace faultline
