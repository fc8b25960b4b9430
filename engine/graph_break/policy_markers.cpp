// Cuts where the source says so: behind a line that carries the comment "# break", or at such a line of its
// own.
#include <map>

#include <fmt/format.h>

#include "engine/autodiff/differentiability.h"
#include "engine/graph_break/break_reasons.h"
#include "engine/graph_break/policy.h"

namespace faultline {

BreakPolicy BreakPolicy::markers() {
  BreakPolicy policy;
  policy.kind_ = Kind::Markers;
  return policy;
}

Result<BreakPolicy> readMarkers(const std::vector<std::string>& words) {
  return words.empty() ? Result<BreakPolicy>(BreakPolicy::markers()) : refuseArguments("markers");
}

namespace {

using torch::jit::Source;

bool saysBreak(const std::string& line) {
  const size_t hash = line.find('#');
  if (hash == std::string::npos) {
    return false;
  }
  const size_t begin = line.find_first_not_of(" \t", hash + 1);
  const size_t end = line.find_last_not_of(" \t\r\n");
  return begin != std::string::npos && line.substr(begin, end + 1 - begin) == "break";
}

// Where a node stands in the function that the graph was made from: of an inlined call, where it was called.
torch::jit::SourceRange placeOf(const Node* node) {
  const auto stack = node->callstack();
  if (stack) {
    const auto frames = (*stack)->vec();
    if (!frames.empty()) {
      return std::get<1>(frames.front());
    }
  }
  return node->sourceRange();
}

struct Lines {
  const Source* source = nullptr;
  size_t first = 0, last = 0;
};

void widen(const Node* node, Lines& lines) {
  const torch::jit::SourceRange range = placeOf(node);
  const Source* source = range.source().get();
  if (source && (!lines.source || lines.source == source)) {
    const size_t line = source->lineno_for_offset(range.start());
    lines.first = lines.source ? std::min(lines.first, line) : line;
    lines.last = lines.source ? std::max(lines.last, line) : line;
    lines.source = source;
  }
  for (const torch::jit::Block* block : node->blocks()) {
    for (const Node* inner : block->nodes()) {
      widen(inner, lines);
    }
  }
}

// Ops and the lines they stand in, in order.
using OpLines = std::vector<std::pair<const Node*, Lines>>;

const OpLines::value_type* opAtMark(const OpLines& ops, const Source* source, size_t line) {
  const OpLines::value_type* found = nullptr;
  for (const auto& op : ops) {
    if (op.second.source == source && op.second.first <= line) {
      found = &op;
    }
  }
  return found;
}

void addMarkedInside(const torch::jit::Block* block, std::vector<const Node*>& marked) {
  OpLines ops;
  for (const Node* node : block->nodes()) {
    Lines lines;
    if (!isConstantLike(node)) {
      widen(node, lines);
    }
    if (lines.source) {
      ops.emplace_back(node, lines);
    }
  }
  std::vector<const Node*> around;
  for (const auto& [node, lines] : ops) {
    for (size_t line = lines.first; line < lines.last && !node->blocks().empty(); ++line) {
      if (saysBreak(lines.source->get_line(line).str())) {
        const OpLines::value_type* at = opAtMark(ops, lines.source, line);
        if (at && at->first == node) {
          around.push_back(node);
          break;
        }
      }
    }
  }
  for (const Node* node : around) {
    for (const torch::jit::Block* inner : node->blocks()) {
      for (const Node* first : inner->nodes()) {
        marked.push_back(first);
        break;
      }
      addMarkedInside(inner, marked);
    }
  }
}

}  // namespace

std::vector<const Node*> markedInside(const WorkingCopy& work) {
  std::vector<const Node*> marked;
  addMarkedInside(work.graph->block(), marked);
  return marked;
}

Result<Wishes> wishesMarkers(const GraphFacts& facts, const BreakPolicy&) {
  const WorkingCopy& work = facts.work;
  std::vector<std::pair<size_t, Lines>> ops;  // top-level node, the lines it stands in
  std::map<const Source*, std::shared_ptr<Source>> sources;
  for (size_t i = 0; i < work.nodes.size(); ++i) {
    if (facts.nodes[i].constant || facts.nodes[i].opened) {
      continue;
    }
    Lines lines;
    widen(work.nodes[i], lines);
    if (lines.source) {
      ops.emplace_back(i, lines);
    }
  }
  std::vector<const Source*> in_order;
  for (const auto& [i, lines] : ops) {
    if (in_order.empty() || in_order.back() != lines.source) {
      if (std::find(in_order.begin(), in_order.end(), lines.source) == in_order.end()) {
        in_order.push_back(lines.source);
      }
    }
  }
  Wishes wishes;
  bool any = false;
  for (const Source* source : in_order) {
    for (size_t line = 0; line < source->num_lines(); ++line) {
      if (!saysBreak(source->get_line(line).str())) {
        continue;
      }
      any = true;
      const auto shown = line + 1 + source->starting_line_no();
      size_t before = SIZE_MAX;
      const Lines* there = nullptr;
      for (const auto& [i, lines] : ops) {
        if (lines.source == source && lines.first <= line) {
          before = i;
          there = &lines;
        }
      }
      if (!there) {
        const std::string& first = work.names.of(work.nodes[ops.front().first]);
        wishes.refused.push_back(refusedCut(BreakReason::nothing_before, first, first));
      } else if (there->last > line) {
        const std::string& name = work.names.of(work.nodes[before]);
        RefusedCut refused =
            refusedCut(BreakReason::inside_block, name, fmt::format("the mark in line {}", shown));
        refused.instead = name;
        wishes.refused.push_back(std::move(refused));
        wishes.cuts.push_back(
            wishAfter(facts, before, fmt::format("nearest legal place to the mark in line {}", shown)));
      } else {
        wishes.cuts.push_back(wishAfter(facts, before, fmt::format("marked in line {}", shown)));
      }
    }
  }
  if (!any) {
    return fail(ErrorKind::Invalid, ops.empty()
                                        ? "no op of the graph knows a line of source: nothing is marked"
                                        : "no line of the source carries the comment '# break'");
  }
  return wishes;
}

}  // namespace faultline
