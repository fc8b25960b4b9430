#include "engine/graph_break/parts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/formulas.h"
#include "engine/support/check.h"

namespace faultline {

namespace {

using torch::jit::Block;
using torch::jit::Use;

void usesInside(const Node* node, std::vector<const Value*>& values) {
  values.insert(values.end(), node->inputs().begin(), node->inputs().end());
  for (const Block* block : node->blocks()) {
    for (const Node* inner : block->nodes()) {
      usesInside(inner, values);
    }
    values.insert(values.end(), block->outputs().begin(), block->outputs().end());
  }
}

bool isStricter(const Node* node) {
  const auto& rows = stricterFormulas();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const StricterFormula& row) { return row.schema == schemaName(node); });
}

using RootSet = std::vector<size_t>;  // sorted

RootSet united(const RootSet& a, const RootSet& b) {
  if (a == b) {
    return a;
  }
  RootSet result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

// For each compiled node of a range: the values that leave its group and depend on it by a gradient.
class RootSets {
 public:
  using InGroup = std::function<bool(size_t node, size_t user)>;

  // One group: all that is compiled, which afterwards is what a gradient comes back to.
  RootSets(const GraphFacts& facts, size_t begin, size_t end)
      : RootSets(begin, end, [this](size_t, size_t user) { return compiled(user); }) {
    for (size_t i = begin; i < end; ++i) {
      compiled_[i - begin] = facts.nodes[i].compiled;
    }
    for (size_t i = end; i-- > begin;) {
      if (compiled(i)) {
        visit(facts.work, i);
        compiled_[i - begin] = !of(i).empty();
      }
    }
  }

  // Smaller groups. A value on which nodes of different sets depend leaves too: it will be between them.
  RootSets(const GraphFacts& facts, const RootSets& whole, InGroup in_group)
      : RootSets(whole.begin_, whole.end_, std::move(in_group)) {
    compiled_ = whole.compiled_;
    divides_ = true;
    for (size_t i = end_; i-- > begin_;) {
      if (compiled(i)) {
        visit(facts.work, i);
      }
    }
  }

  bool compiled(size_t node) const { return compiled_[node - begin_]; }
  const RootSet& of(size_t node) const { return roots_[node - begin_]; }
  bool includes(size_t node, size_t other) const {
    return std::includes(of(node).begin(), of(node).end(), of(other).begin(), of(other).end());
  }

 private:
  RootSets(size_t begin, size_t end, InGroup in_group)
      : begin_(begin),
        end_(end),
        in_group_(std::move(in_group)),
        compiled_(end - begin),
        roots_(end - begin) {}

  void visit(const WorkingCopy& work, size_t i) {
    const Node* node = work.nodes[i];
    RootSet by_gradient, by_use;
    std::vector<const RootSet*> users;
    bool any_leaves = false;
    for (size_t k = 0; k < node->outputs().size(); ++k) {
      bool leaves = false;
      for (const Use& use : node->outputs()[k]->uses()) {
        const bool returned = use.user == work.graph->return_node();
        const size_t user = returned ? end_ : work.topLevel(use.user);
        if (user >= end_ || !in_group_(i, user)) {
          leaves = true;
          continue;
        }
        const RootSet& roots = of(user);
        by_use = united(by_use, roots);
        if (carriesGradient(node, k) && passesGradient(use.user, use.offset)) {
          by_gradient = united(by_gradient, roots);
          users.push_back(&roots);
        }
      }
      if (leaves && carriesGradient(node, k)) {
        by_gradient = united(by_gradient, {next_root_++});
        any_leaves = true;
      }
    }
    if (divides_ && !any_leaves && std::any_of(users.begin(), users.end(), [&](const RootSet* roots) {
          return *roots != by_gradient;
        })) {
      by_gradient.push_back(next_root_++);
    }
    // A mask that only serves one result goes where that is computed.
    roots_[i - begin_] = by_gradient.empty() ? std::move(by_use) : std::move(by_gradient);
  }

  size_t begin_, end_;
  InGroup in_group_;
  bool divides_ = false;
  size_t next_root_ = 0;
  std::vector<bool> compiled_;
  std::vector<RootSet> roots_;
};

// Values in WorkingCopy::before order, each once.
void sortByPlace(const WorkingCopy& work, std::vector<Value*>& values) {
  struct Placed {
    WorkingCopy::Place place;
    Value* value;
    bool operator<(const Placed& other) const { return place < other.place; }
  };
  std::vector<Placed> placed;
  placed.reserve(values.size());
  for (Value* value : values) {
    placed.push_back({work.placeOf(value), value});
  }
  std::sort(placed.begin(), placed.end());
  values.clear();
  for (const Placed& one : placed) {
    if (values.empty() || values.back() != one.value) {
      values.push_back(one.value);
    }
  }
}

// `part.nodes` rise.
void fillBoundary(const WorkingCopy& work, Part& part) {
  if (part.nodes.empty()) {
    return;
  }
  const size_t first = part.nodes.front(), last = part.nodes.back();
  const bool whole_range = last - first + 1 == part.nodes.size();
  auto inside = [&](size_t i) {
    return i >= first && i <= last &&
           (whole_range || std::binary_search(part.nodes.begin(), part.nodes.end(), i));
  };
  std::vector<const Value*> used;
  for (size_t i : part.nodes) {
    used.clear();
    usesInside(work.nodes[i], used);
    for (const Value* value : used) {
      const Node* maker = value->node();
      if (!work.isGraphInput(value) && !work.isBlockInput(value)) {
        const auto at = work.index.find(maker);
        // What a nested block makes for itself, or is given, is not ours to pass.
        if (at == work.index.end() || work.constant[at->second] || inside(at->second)) {
          continue;
        }
      }
      part.inputs.push_back(const_cast<Value*>(value));
    }
    for (Value* output : work.nodes[i]->outputs()) {
      const auto& uses = output->uses();
      if (std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
            return use.user == work.graph->return_node() || !inside(work.topLevel(use.user));
          })) {
        part.outputs.push_back(output);
      }
    }
  }
  sortByPlace(work, part.inputs);
  sortByPlace(work, part.outputs);
}

}  // namespace

GraphFacts::GraphFacts(const WorkingCopy& work_copy, bool trust_formulas)
    : work(work_copy), nodes(work.nodes.size()), written(work) {
  for (const Value* output : work.graph->outputs()) {
    escapes_[output] = true;
  }
  for (size_t i = work.nodes.size(); i-- > 0;) {
    Node* node = work.nodes[i];
    NodeUse& use = nodes[i];
    const bool passes = passesStorage(node);
    if (passes && escapes(node)) {
      std::vector<const Value*> used;
      usesInside(node, used);
      for (const Value* value : used) {
        escapes_[value] = true;
      }
    }
    if (work.constant[i]) {
      use.constant = true;
      continue;
    }
    if (work.opened[i]) {
      use.opened = true;
      continue;
    }
    if (std::string reason = barrierReason(work, node); !reason.empty()) {
      use.barrier = true;
      use.reason = std::move(reason);
      continue;
    }
    CompileChoice choice = compileChoice(node, trust_formulas);
    if (choice.compiled && passes && escapes(node)) {
      choice = {false, schemaName(node) + " gives a view, or its argument itself, that leaves the graph"};
    }
    if (choice.compiled && passes && touchesWritten(node)) {
      choice = {false,
                schemaName(node) + " gives a view, or its argument itself, of what is written in place"};
    }
    if (choice.compiled && written.anything() && isStricter(node) && touchesWritten(node)) {
      choice = {false, schemaName(node) +
                           " keeps an operand that may share memory with what is written in place, and of "
                           "which eager has a copy"};
    }
    use.compiled = choice.compiled;
    use.reason = std::move(choice.reason);
  }
}

bool GraphFacts::escapes(const Node* node) const {
  return std::any_of(node->outputs().begin(), node->outputs().end(),
                     [this](const Value* output) { return escapes_.count(output) > 0; });
}

bool GraphFacts::touchesWritten(const Node* node) const {
  for (const auto values : {node->inputs(), node->outputs()}) {
    for (const Value* value : values) {
      if (mayHoldTensor(*value->type()) && written.holds(value)) {
        return true;
      }
    }
  }
  return false;
}

namespace {

std::vector<Part> eagerPart(const GraphFacts& facts, size_t begin, size_t end) {
  Part whole = boundary(facts.work, begin, end);
  return whole.nodes.empty() ? std::vector<Part>{} : std::vector<Part>{std::move(whole)};
}

// Nodes of a range that `node` depends on, constants left out.
template <class Visit>
void forEachProducer(const GraphFacts& facts, size_t begin, size_t node, const Visit& visit) {
  std::vector<const Value*> used;
  usesInside(facts.work.nodes[node], used);
  for (const Value* value : used) {
    auto it = facts.work.index.find(value->node());
    if (it != facts.work.index.end() && it->second >= begin && it->second < node &&
        !facts.nodes[it->second].constant) {
      visit(it->second);
    }
  }
}

// Of nodes without a barrier among them.
std::vector<Part> splitIntoParts(const GraphFacts& facts, size_t begin, size_t end) {
  const WorkingCopy& work = facts.work;
  const RootSets results(facts, begin, end);
  // A level for each node: along a dependency it stays or rises, by one for a step.
  auto levels = [&](const auto& isStep) {
    std::vector<size_t> level(end - begin, 0);
    size_t ordered_level = 0;
    for (size_t i = begin; i < end; ++i) {
      if (facts.nodes[i].constant) {
        continue;
      }
      size_t& mine = level[i - begin];
      forEachProducer(facts, begin, i, [&](size_t from) {
        mine = std::max(mine, level[from - begin] + (isStep(from, i) ? 1 : 0));
      });
      if (!results.compiled(i) && isOrdered(work.nodes[i])) {
        mine = ordered_level = std::max(mine, ordered_level);
      }
    }
    return level;
  };
  auto leavesSet = [&](size_t from, size_t to) {
    return results.compiled(from) != results.compiled(to) ||
           (results.compiled(to) && !results.includes(from, to));
  };
  // For a first backward, nodes of equal level and root set would do: they never wait for each other in a
  // circle. A second may begin at any value that leaves them, so those that different ones depend on part.
  const std::vector<size_t> coarse = levels(leavesSet);
  const RootSets leaving(facts, results, [&](size_t node, size_t user) {
    return results.compiled(user) && coarse[node - begin] == coarse[user - begin] &&
           results.of(node) == results.of(user);
  });
  const std::vector<size_t> fine = levels([&](size_t from, size_t to) {
    return leavesSet(from, to) || coarse[from - begin] != coarse[to - begin] ||
           (results.compiled(to) && results.of(from) == results.of(to) && !leaving.includes(from, to));
  });
  // Level, compiled, and two root sets, each with few roots last.
  using Key = std::tuple<size_t, bool, size_t, RootSet, size_t, RootSet>;
  std::map<Key, Part> parts;
  for (size_t i = begin; i < end; ++i) {
    if (facts.nodes[i].constant) {
      continue;
    }
    const bool compiled = results.compiled(i);
    const RootSet all = compiled ? results.of(i) : RootSet{};
    const RootSet own = compiled ? leaving.of(i) : RootSet{};
    Part& part =
        parts[Key{fine[i - begin], compiled, SIZE_MAX - all.size(), all, SIZE_MAX - own.size(), own}];
    part.compiled = compiled;
    part.nodes.push_back(i);
  }
  std::vector<Part> result;
  for (auto& [key, part] : parts) {
    fillBoundary(work, part);
    result.push_back(std::move(part));
  }
  return result;
}

}  // namespace

std::vector<Segment> splitIntoSegments(const GraphFacts& facts, size_t begin, size_t end, bool force_eager) {
  std::vector<Segment> segments;
  if (force_eager) {
    segments.push_back({begin, end, true, eagerPart(facts, begin, end)});
    return segments;
  }
  for (size_t i = begin; i < end;) {
    Segment segment{i, i, facts.nodes[i].barrier, {}};
    while (segment.end < end &&
           (facts.nodes[segment.end].constant || facts.nodes[segment.end].barrier == segment.barriers)) {
      ++segment.end;
    }
    i = segment.end;
    segment.parts = segment.barriers ? eagerPart(facts, segment.begin, segment.end)
                                     : splitIntoParts(facts, segment.begin, segment.end);
    if (!segment.parts.empty()) {
      segments.push_back(std::move(segment));
    }
  }
  return segments;
}

bool hasCompiledPart(const GraphFacts& facts, size_t begin, size_t end) {
  const WorkingCopy& work = facts.work;
  for (size_t i = begin; i < end;) {
    size_t stop = i;
    while (stop < end &&
           (facts.nodes[stop].constant || facts.nodes[stop].barrier == facts.nodes[i].barrier)) {
      ++stop;
    }
    // As RootSets: the first from the end that a gradient comes back to. Until then no user behind is
    // compiled.
    for (size_t k = stop; k-- > i;) {
      const Node* node = work.nodes[k];
      for (size_t o = 0; facts.nodes[k].compiled && o < node->outputs().size(); ++o) {
        if (carriesGradient(node, o) && node->outputs()[o]->hasUses()) {
          return true;
        }
      }
    }
    i = stop;
  }
  return false;
}

Part boundary(const WorkingCopy& work, size_t begin, size_t end) {
  Part whole;
  for (size_t i = begin; i < end; ++i) {
    if (!work.constant[i]) {
      whole.nodes.push_back(i);
    }
  }
  fillBoundary(work, whole);
  return whole;
}

std::shared_ptr<Graph> extractPart(const WorkingCopy& work, const Part& part) {
  auto graph = std::make_shared<Graph>();
  std::unordered_map<Value*, Value*> map;
  for (Value* input : part.inputs) {
    Value* copy = graph->addInput()->setType(input->type());
    if (input->hasDebugName()) {
      copy->setDebugName(input->debugName());
    }
    map[input] = copy;
  }
  std::function<Value*(Value*)> mapped = [&](Value* value) -> Value* {
    auto it = map.find(value);
    if (it != map.end()) {
      return it->second;
    }
    Node* node = value->node();
    FAULTLINE_CHECK(isConstantLike(node), "what is not passed into a part is a constant");
    Node* copy = graph->createClone(node, mapped);
    graph->block()->appendNode(copy);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      map[node->outputs()[i]] = copy->outputs()[i];
    }
    return map.at(value);
  };
  for (size_t i : part.nodes) {
    Node* node = work.nodes[i];
    Node* copy = graph->createClone(node, mapped);
    graph->block()->appendNode(copy);
    for (size_t k = 0; k < node->outputs().size(); ++k) {
      map[node->outputs()[k]] = copy->outputs()[k];
    }
  }
  for (Value* output : part.outputs) {
    graph->registerOutput(map.at(output));
  }
  return graph;
}

}  // namespace faultline
