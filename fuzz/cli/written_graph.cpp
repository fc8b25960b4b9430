#include "fuzz/cli/written_graph.h"

#include <fmt/format.h>

#include "engine/support/check.h"
#include "faultline/ir.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kTail = "with ";

bool isHeaderEnd(const std::string& line) {
  return line.size() >= 2 && line.compare(line.size() - 2, 2, "):") == 0;
}

// "prim::DifferentiableGraph_0" → "DifferentiableGraph_0"
std::string unqualified(const std::string& kind) {
  const size_t colons = kind.rfind("::");
  return colons == std::string::npos ? kind : kind.substr(colons + 2);
}

}  // namespace

WrittenGraph::WrittenGraph(const Graph& graph) {
  std::istringstream text(writeGraph(graph));
  for (std::string line; std::getline(text, line);) {
    if (line.rfind(kTail, 0) == 0)
      tails_[line.substr(kTail.size(), line.find(" = ") - kTail.size())] = lines_.size();
    lines_.push_back(std::move(line));
  }
  walk(graph, 0, "main");
}

// One line for a node, one for the head and one for the return of each block; only the head of a graph takes
// several.
void WrittenGraph::walk(const Graph& graph, size_t line, const std::string& path) {
  while (line < lines_.size() && !isHeaderEnd(lines_[line])) ++line;
  std::vector<const Node*> with_subgraph;
  line = walkBlock(*graph.block(), line + 1, path, with_subgraph);
  place(graph.return_node(), line, path);
  for (const Node* node : with_subgraph) {
    const std::string name = kind(node);
    const auto tail = tails_.find(name);
    FAULTLINE_CHECK(tail != tails_.end(), "no tail for " + name);
    walk(*node->g(torch::jit::attr::Subgraph), tail->second,
         path == "main" ? unqualified(name) : path + "/" + unqualified(name));
  }
}

size_t WrittenGraph::walkBlock(const torch::jit::Block& block, size_t line, const std::string& path,
                               std::vector<const Node*>& with_subgraph) {
  for (const Node* node : block.nodes()) {
    place(node, line++, path);
    if (node->hasAttribute(torch::jit::attr::Subgraph)) with_subgraph.push_back(node);
    for (const torch::jit::Block* inner : node->blocks()) {
      line = walkBlock(*inner, line + 1, path, with_subgraph);
      place(inner->return_node(), line++, path);
    }
  }
  return line;
}

void WrittenGraph::place(const Node* node, size_t line, const std::string& path) {
  FAULTLINE_CHECK(line < lines_.size(), "a graph has more nodes than its text has lines");
  nodes_.push_back(node);
  places_[node] = {line, path};
}

std::string_view WrittenGraph::lineOf(const Node* node) const {
  const auto found = places_.find(node);
  FAULTLINE_CHECK(found != places_.end(), "a node of another graph");
  const std::string_view line = lines_[found->second.line];
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

std::string WrittenGraph::kind(const Node* node) const {
  if (node->kind() == torch::jit::prim::Return) return "return";
  std::string_view line = lineOf(node);
  if (!node->outputs().empty()) line.remove_prefix(line.find(" = ") + 3);
  return std::string(line.substr(0, line.find_first_of("[(")));
}

std::vector<std::string> WrittenGraph::inputs(const Node* node) const {
  std::string_view list = lineOf(node);
  list.remove_prefix(list.rfind('(') + 1);
  list.remove_suffix(1);
  std::vector<std::string> names;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(", "), list.size());
    names.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 2, list.size()));
  }
  FAULTLINE_CHECK(names.size() == node->inputs().size(), "a line of IR text that is not as expected");
  return names;
}

std::string WrittenGraph::output(const Node* node) const {
  if (node->outputs().empty()) return {};
  const std::string_view line = lineOf(node);
  return std::string(line.substr(0, line.find(' ')));
}

const std::string& WrittenGraph::graphOf(const Node* node) const { return places_.at(node).graph; }

void WrittenGraph::comment(const Node* node, const std::string& text) {
  const size_t line = places_.at(node).line;
  const size_t indent = lines_[line].size() - lineOf(node).size();
  comments_[line].push_back(std::string(indent + 2, ' ') + "# " + text);
}

std::string WrittenGraph::text() const {
  std::string text;
  for (size_t i = 0; i < lines_.size(); ++i) {
    text += lines_[i] + '\n';
    const auto under = comments_.find(i);
    if (under == comments_.end()) continue;
    for (const std::string& comment : under->second) text += comment + '\n';
  }
  return text;
}

}  // namespace faultline::cli
