// Policies that ask op by op: none, after, every, kinds, predicate.
#include <algorithm>

#include <fmt/format.h>

#include "engine/graph_break/break_reasons.h"
#include "engine/graph_break/policy.h"
#include "engine/ir/nearest.h"

namespace faultline {

BreakPolicy BreakPolicy::none() { return {}; }

BreakPolicy BreakPolicy::after(std::vector<std::string> names) {
  BreakPolicy policy;
  policy.kind_ = Kind::After;
  policy.names_ = std::move(names);
  return policy;
}

BreakPolicy BreakPolicy::every(size_t ops) {
  BreakPolicy policy;
  policy.kind_ = Kind::Every;
  policy.count_ = ops;
  return policy;
}

BreakPolicy BreakPolicy::kinds(std::vector<std::string> ops) {
  BreakPolicy policy;
  policy.kind_ = Kind::Kinds;
  policy.names_ = std::move(ops);
  return policy;
}

BreakPolicy BreakPolicy::predicate(Accepts accepts) {
  BreakPolicy policy;
  policy.kind_ = Kind::Predicate;
  policy.accepts_ = std::move(accepts);
  return policy;
}

Result<BreakPolicy> readNone(const std::vector<std::string>& words) {
  return words.empty() ? Result<BreakPolicy>(BreakPolicy::none()) : refuseArguments("none");
}

Result<BreakPolicy> readAfter(const std::vector<std::string>& words) {
  return words.empty() ? refuseArguments("after") : BreakPolicy::after(words);
}

Result<BreakPolicy> readEvery(const std::vector<std::string>& words) {
  if (words.size() != 1) {
    return refuseArguments("every");
  }
  auto count = readCount(words[0], "every:N with N");
  return count ? Result<BreakPolicy>(BreakPolicy::every(*count)) : tl::make_unexpected(count.error());
}

Result<BreakPolicy> readKinds(const std::vector<std::string>& words) {
  return words.empty() ? refuseArguments("kinds") : BreakPolicy::kinds(words);
}

Result<BreakPolicy> readPredicate(const std::vector<std::string>&) { return refuseArguments("predicate"); }

Result<Wishes> wishesNone(const GraphFacts&, const BreakPolicy&) { return Wishes{}; }

std::string whatThereIs(const NodeNames& names, const std::string& wanted) {
  std::vector<std::string> ops;
  for (const std::string& name : names.all()) {
    if (names.find(name)->kind() != torch::jit::prim::Constant) {
      ops.push_back(name);
    }
  }
  return ops.empty() ? ": the graph has none" : nearestOrAll(wanted, ops);
}

Result<Wishes> wishesAfter(const GraphFacts& facts, const BreakPolicy& policy) {
  const WorkingCopy& work = facts.work;
  Wishes wishes;
  for (const std::string& name : policy.names()) {
    const Node* node = work.names.find(name);
    if (!node) {
      return fail(ErrorKind::Invalid,
                  fmt::format("no op is named '{}'{}", name, whatThereIs(work.names, name)));
    }
    const size_t top = work.topLevel(node);
    if (work.nodes[top] != node || facts.nodes[top].constant) {
      wishNear(facts, node, wishes);
    } else if (endsBlock(facts, top + 1)) {
      wishes.refused.push_back(refusedCut(BreakReason::block_ends, name, name));
    } else {
      wishes.cuts.push_back(wishAfter(facts, top, fmt::format("asked for after {}", name)));
    }
  }
  return wishes;
}

Result<Wishes> wishesEvery(const GraphFacts& facts, const BreakPolicy& policy) {
  if (policy.count() == 0) {
    return fail(ErrorKind::Invalid, "a piece cannot have 0 ops");
  }
  Wishes wishes;
  size_t ops = 0;
  for (const NodeUse& use : facts.nodes) {
    ops += use.constant || use.opened ? 0 : 1;
  }
  size_t count = 0, total = 0;
  const torch::jit::Block* block = nullptr;
  for (size_t i = 0; i < facts.nodes.size(); ++i) {
    if (facts.nodes[i].constant) {
      continue;
    }
    // A piece ends with its block anyhow, and where a block was.
    if (facts.nodes[i].opened || facts.work.nodes[i]->owningBlock() != block) {
      block = facts.work.nodes[i]->owningBlock();
      count = 0;
    }
    if (facts.nodes[i].opened) {
      continue;
    }
    ++total;
    if (++count % policy.count() == 0 && total < ops) {
      wishes.cuts.push_back(wishAfter(facts, i, fmt::format("every {} ops", policy.count())));
    }
  }
  return wishes;
}

Result<Wishes> wishesKinds(const GraphFacts& facts, const BreakPolicy& policy) {
  const WorkingCopy& work = facts.work;
  std::vector<bool> found(policy.names().size(), false);
  auto matches = [&](const Node* node) {
    for (size_t k = 0; k < policy.names().size(); ++k) {
      if (isOfKind(node, {policy.names()[k]})) {
        found[k] = true;
        return true;
      }
    }
    return false;
  };
  Wishes wishes;
  // Blocks are looked through too: an op there is asked for like any other.
  for (const std::string& name : work.names.all()) {
    const Node* node = work.names.find(name);
    if (!matches(node)) {
      continue;
    }
    const size_t top = work.topLevel(node);
    if (work.nodes[top] != node || facts.nodes[top].constant) {
      wishNear(facts, node, wishes);
    } else {
      wishes.cuts.push_back(
          wishAfter(facts, top, fmt::format("behind every {}", node->kind().toUnqualString())));
    }
  }
  for (size_t k = 0; k < found.size(); ++k) {
    if (!found[k]) {
      return fail(ErrorKind::Invalid, fmt::format("the graph has no op of the kind '{}'", policy.names()[k]));
    }
  }
  return wishes;
}

Result<Wishes> wishesPredicate(const GraphFacts& facts, const BreakPolicy& policy) {
  if (!policy.accepts()) {
    return fail(ErrorKind::Invalid, "the predicate is empty");
  }
  Wishes wishes;
  for (size_t i = 0; i < facts.nodes.size(); ++i) {
    if (!facts.nodes[i].constant && !facts.nodes[i].opened && policy.accepts()(*facts.work.nodes[i])) {
      wishes.cuts.push_back(wishAfter(facts, i, "accepted by the caller's predicate"));
    }
  }
  return wishes;
}

}  // namespace faultline
