// The broken graph as a drawing: a box per piece, seams in colour where they cross a cut.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/graph_break/opening.h"
#include "engine/graph_break/parameter_uses.h"
#include "faultline/graph_break.h"

namespace faultline {

namespace {

std::string dotText(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\l";  // ends a line that stands at the left
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + (text.find('\n') == std::string_view::npos ? "\"" : "\\l\"");
}

// Words in lines of at most `width`, as far as words allow.
std::string wrapped(const std::vector<std::string>& words, size_t width) {
  std::string out;
  size_t column = 0;
  for (const std::string& word : words) {
    if (column > 0 && column + 2 + word.size() > width) {
      out += ",\n";
      column = 0;
    } else if (column > 0) {
      out += ", ";
      column += 2;
    }
    out += word;
    column += word.size();
  }
  return out;
}

size_t nodesInside(const Node* node) {
  size_t count = 0;
  for (const torch::jit::Block* block : node->blocks()) {
    for (const Node* inner : block->nodes()) {
      count += (inner->kind() == torch::jit::prim::Constant ? 0 : 1) + nodesInside(inner);
    }
  }
  return count;
}

class Drawing {
 public:
  Drawing(const GraphFacts& facts, const BreakPlan& plan) : facts_(facts), work_(facts.work), plan_(plan) {}

  std::string str() {
    text_ =
        "digraph broken {\n"
        "  graph [fontname=\"Helvetica\", fontsize=11, ranksep=0.35, nodesep=0.25, style=rounded];\n"
        "  node [shape=box, style=\"filled,rounded\", fillcolor=white, fontname=\"Helvetica\", fontsize=10, "
        "height=0.3];\n"
        "  edge [arrowsize=0.6, fontname=\"Helvetica\", fontsize=9, color=\"#555555\"];\n";
    for (const Value* input : work_.graph->inputs()) {
      if (input->hasUses()) {
        addInput(input);
      }
    }
    size_t before = 0;
    for (size_t k = 0; k < plan_.pieces.size(); ++k) {
      addPiece(k, pieceBegin(work_, before, plan_.ends[k]), plan_.ends[k]);
      before = plan_.ends[k];
    }
    for (size_t i = 0; i < work_.nodes.size(); ++i) {
      if (work_.opened[i]) {
        text_ += fmt::format("  op{} [shape=diamond, style=filled, fillcolor=\"#e5dcef\", label={}];\n", i,
                             dotText(work_.nameOf(i)));
      }
    }
    text_ += "  return [shape=plaintext, style=\"\", label=\"return\"];\n";
    for (size_t i = 0; i < work_.nodes.size(); ++i) {
      if (!facts_.nodes[i].constant) {
        for (const Value* output : work_.nodes[i]->outputs()) {
          addEdges(output, fmt::format("op{}", i), i);
        }
      }
      if (work_.opened[i]) {
        for (const torch::jit::Block* block : work_.nodes[i]->blocks()) {
          for (const Value* carried : block->inputs()) {
            addEdges(carried, fmt::format("op{}", i), SIZE_MAX);
          }
        }
      }
    }
    for (const Value* input : work_.graph->inputs()) {
      addEdges(input, fmt::format("in{}", input->offset()), SIZE_MAX);
    }
    return text_ + "}\n";
  }

 private:
  size_t pieceOf(size_t node) const {
    return static_cast<size_t>(std::upper_bound(plan_.ends.begin(), plan_.ends.end(), node) -
                               plan_.ends.begin());
  }

  void addInput(const Value* input) {
    bool parameter = false;
    for (const PlannedPiece& piece : plan_.pieces) {
      parameter = parameter ||
                  std::count(piece.parameters.begin(), piece.parameters.end(), work_.valueName(input)) > 0;
    }
    text_ += fmt::format("  in{} [shape=ellipse, fillcolor=\"{}\", label={}];\n", input->offset(),
                         parameter ? "#e8f3e8" : "#eeeeee", dotText(work_.valueName(input)));
  }

  void addPiece(size_t k, size_t begin, size_t end) {
    const PlannedPiece& piece = plan_.pieces[k];
    std::string label = fmt::format("piece {}{}", k, piece.eager_reason.empty() ? "" : ": eager");
    if (!piece.block.empty()) {
      label += "\n" + piece.block;
    }
    if (!piece.parameters.empty()) {
      label += fmt::format("\ngradients ready: {}", wrapped(piece.parameters, 40));
      if (piece.bytes > 0) {
        label += fmt::format("\n{} bytes", piece.bytes);
      }
    }
    text_ += fmt::format(
        "  subgraph cluster_{} {{\n    label={}; labeljust=l; bgcolor=\"{}\"; color=\"#8899aa\";\n", k,
        dotText(label), piece.eager_reason.empty() ? "#eaf1fb" : "#f6efe2");
    for (size_t i = begin; i < end; ++i) {
      if (facts_.nodes[i].constant) {
        continue;
      }
      const size_t inside = nodesInside(work_.nodes[i]);
      std::string name = work_.names.of(work_.nodes[i]);
      if (inside > 0) {
        name += fmt::format("\n{} inside", inside);
      }
      text_ += fmt::format("    op{} [label={}{}];\n", i, dotText(name),
                           facts_.nodes[i].compiled ? "" : ", fillcolor=\"#f3d9b1\"");
    }
    text_ += "  }\n";
  }

  // One arrow per user, in colour where it crosses a cut.
  void addEdges(const Value* value, const std::string& from, size_t maker) {
    std::set<size_t> users;
    for (const auto& use : value->uses()) {
      users.insert(use.user == work_.graph->return_node() ? work_.nodes.size() : work_.topLevel(use.user));
    }
    for (size_t user : users) {
      const bool returned = user == work_.nodes.size();
      std::string style;
      if (maker == SIZE_MAX) {
        style = " [color=\"#aaaaaa\"]";
      } else if (!returned &&
                 (work_.opened[maker] || work_.opened[user] || pieceOf(maker) != pieceOf(user))) {
        style = fmt::format(" [color=\"#c0392b\", penwidth=1.6, fontcolor=\"#c0392b\", label={}]",
                            dotText(" " + work_.valueName(value) + " "));
      }
      text_ += returned ? fmt::format("  {} -> return{};\n", from, style)
                        : fmt::format("  {} -> op{}{};\n", from, user, style);
    }
  }

  const GraphFacts& facts_;
  const WorkingCopy& work_;
  const BreakPlan& plan_;
  std::string text_;
};

}  // namespace

Result<std::string> planDot(const Graph& graph, const BreakPlan& plan) {
  auto copy = WorkingCopy::look(graph, plan.opened);
  if (!copy) {
    return tl::make_unexpected(copy.error());
  }
  if (!fits(plan, **copy) || plan.pieces.size() != plan.ends.size()) {
    return fail(ErrorKind::Invalid, "the plan was made for another graph");
  }
  const GraphFacts facts(**copy, false);
  return Drawing(facts, plan).str();
}

}  // namespace faultline
