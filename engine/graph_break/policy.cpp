#include "engine/graph_break/policy.h"

#include <charconv>

#include <fmt/format.h>

#include "engine/autodiff/differentiability.h"
#include "engine/graph_break/break_reasons.h"

namespace faultline {

namespace {

struct PolicyRow {
  BreakPolicy::Kind kind;
  std::string_view word, arguments, help;
  Result<BreakPolicy> (*read)(const std::vector<std::string>&);
};

const PolicyRow policy_rows[] = {
#define FAULTLINE_POLICY(Name, word, arguments, help) \
  PolicyRow{BreakPolicy::Kind::Name, word, arguments, help, read##Name},
#include "faultline/break_policies.def"
#undef FAULTLINE_POLICY
};

// The last op before top-level node `i`; SIZE_MAX: there is none.
size_t opBefore(const GraphFacts& facts, size_t i) {
  while (i-- > 0) {
    if (!facts.nodes[i].constant) {
      return i;
    }
  }
  return SIZE_MAX;
}

}  // namespace

Wish wishAfter(const GraphFacts& facts, size_t i, std::string reason) {
  return {i + 1, facts.work.nameOf(i), std::move(reason)};
}

bool wishBefore(const GraphFacts& facts, size_t i, std::string reason, Wishes& wishes) {
  const size_t before = opBefore(facts, i);
  if (before != SIZE_MAX) {
    wishes.cuts.push_back(wishAfter(facts, before, std::move(reason)));
  }
  return before != SIZE_MAX;
}

bool isOfKind(const Node* node, const std::vector<std::string>& kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) {
    return kind == node->kind().toUnqualString() || kind == node->kind().toQualString();
  });
}

bool endsBlock(const GraphFacts& facts, size_t end) {
  const WorkingCopy& work = facts.work;
  const torch::jit::Block* block = end == 0 ? work.graph->block() : work.nodes[end - 1]->owningBlock();
  if (block == work.graph->block()) {
    return false;
  }
  while (end < work.nodes.size() && facts.nodes[end].constant) {
    ++end;
  }
  const torch::jit::Block* next =
      end < work.nodes.size() ? work.nodes[end]->owningBlock() : work.graph->block();
  while (next != block && next != work.graph->block()) {
    next = next->owningNode()->owningBlock();
  }
  return next != block;
}

void wishNear(const GraphFacts& facts, const Node* node, Wishes& wishes) {
  const WorkingCopy& work = facts.work;
  const std::string& name = work.names.of(node);
  const size_t top = work.topLevel(node);
  const bool constant = facts.nodes[top].constant;
  RefusedCut refused =
      refusedCut(isConstantLike(node) ? BreakReason::constant : BreakReason::inside_block, name, name);
  const size_t near = constant ? opBefore(facts, top) : top;
  if (near != SIZE_MAX) {
    Wish wish = wishAfter(facts, near, fmt::format("nearest legal place to a cut after {}", name));
    refused.instead = wish.after;
    wishes.cuts.push_back(std::move(wish));
  }
  wishes.refused.push_back(std::move(refused));
}

Result<size_t> readCount(const std::string& word, std::string_view what) {
  size_t count = 0;
  const char* end = word.data() + word.size();
  const auto [stopped, code] = std::from_chars(word.data(), end, count);
  if (code != std::errc() || stopped != end || count == 0) {
    return fail(ErrorKind::Invalid, fmt::format("expected {} of at least 1, not '{}'", what, word));
  }
  return count;
}

Result<BreakPolicy> refuseArguments(std::string_view word) {
  for (const PolicyRow& row : policy_rows) {
    if (row.word == word) {
      const std::string arguments(row.arguments);
      if (arguments.empty()) return fail(ErrorKind::Invalid, fmt::format("nothing stands behind '{}'", word));
      return fail(ErrorKind::Invalid, arguments[0] == '['
                                          ? fmt::format("expected {}[:{}", word, arguments.substr(1))
                                          : fmt::format("expected {}:{}", word, arguments));
    }
  }
  return fail(ErrorKind::Invalid, fmt::format("'{}' is no policy", word));
}

Result<BreakPolicy> BreakPolicy::read(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    if (end > 0) {
      words.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (words.empty()) {
    return none();
  }
  if (words[0] == "inside") {
    auto policy = readWords({words.begin() + 1, words.end()});
    return policy ? policy->insideBlocks() : policy;
  }
  return readWords(words);
}

BreakPolicy BreakPolicy::insideBlocks() const {
  BreakPolicy policy = *this;
  policy.inside_ = true;
  return policy;
}

Result<BreakPolicy> BreakPolicy::readWords(const std::vector<std::string>& words) {
  if (words.empty()) {
    return fail(ErrorKind::Invalid, "expected a policy behind 'inside'");
  }
  for (const PolicyRow& row : policy_rows) {
    if (!row.word.empty() && row.word == words[0]) {
      return row.read({words.begin() + 1, words.end()});
    }
  }
  std::string known;
  for (const std::string& usage : usage()) {
    known += (known.empty() ? "" : ", ") + usage;
  }
  return fail(ErrorKind::Invalid, fmt::format("expected one of {}; not '{}'", known, words[0]));
}

std::vector<std::string> BreakPolicy::usage() {
  std::vector<std::string> result;
  for (const PolicyRow& row : policy_rows) {
    if (row.word.empty()) {
      continue;
    }
    const bool optional = !row.arguments.empty() && row.arguments[0] == '[';
    result.push_back(row.arguments.empty() ? std::string(row.word)
                     : optional            ? fmt::format("{}[:{}", row.word, row.arguments.substr(1))
                                           : fmt::format("{}:{}", row.word, row.arguments));
  }
  return result;
}

}  // namespace faultline
