#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/ir/constants.h>

#include "engine/autodiff/differentiability.h"
#include "engine/graph_break/guarded.h"
#include "engine/ir/walk.h"
#include "faultline/graph_break.h"
#include "faultline/ir.h"

namespace faultline {

namespace {

using Row = std::array<std::string, 5>;
constexpr std::array header = {"opcode", "name", "target", "args", "kwargs"};
constexpr std::string_view gap = "  ";

std::string number(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

// Python's spelling, as torch.fx prints constants.
std::string literal(const c10::IValue& value) {
  if (value.isNone()) {
    return "None";
  }
  if (value.isBool()) {
    return value.toBool() ? "True" : "False";
  }
  if (value.isInt()) {
    return std::to_string(value.toInt());
  }
  if (value.isDouble()) {
    return number(value.toDouble());
  }
  if (value.isString()) {
    return fmt::format("'{}'", value.toStringRef());
  }
  if (value.isDevice()) {
    return value.toDevice().str();
  }
  if (value.isTensor()) {
    return value.toTensor().defined() ? fmt::format("tensor[{}]", fmt::join(value.toTensor().sizes(), ", "))
                                      : "None";
  }
  if (value.isList() || value.isTuple()) {
    std::vector<std::string> elements;
    if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) {
        elements.push_back(literal(element));
      }
    } else {
      for (const c10::IValue& element : value.toTupleRef().elements()) {
        elements.push_back(literal(element));
      }
    }
    return value.isList() ? fmt::format("[{}]", fmt::join(elements, ", "))
                          : fmt::format("({}{})", fmt::join(elements, ", "), elements.size() == 1 ? "," : "");
  }
  return fmt::format("<{}>", value.tagKind());
}

class TableBuilder {
 public:
  TableBuilder(const Graph& graph, const TableNames& given) : graph_(graph), names_(graph) {
    takeNames(given);
    for (const Value* input : graph.inputs()) {
      rows_.push_back({"placeholder", nameOf(input), nameOf(input), "()", "{}"});
    }
    addBlock(graph.block(), 0);
    rows_.push_back({"output", "output", "output", tuple(names(graph.outputs())), "{}"});
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::string nameOf(const Value* value) const {
    const Node* node = value->node();
    if (node->kind() == torch::jit::prim::Constant) {
      auto constant = torch::jit::toIValue(value);
      return constant ? literal(*constant) : std::string("None");
    }
    if (isConstantLike(node)) {
      return fmt::format("[{}]", fmt::join(names(node->inputs()), ", "));
    }
    if (node == graph_.param_node() && inputs_.size() == graph_.inputs().size()) {
      return inputs_[value->offset()];
    }
    if (node == graph_.param_node()) {
      return value->hasDebugName() ? value->debugNameBase() : value->debugName();
    }
    // As plans call them: what goes round a Loop.
    if (node->kind() == torch::jit::prim::Param) {
      const Node* owner = node->owningBlock()->owningNode();
      return value->offset() == 0 ? opName(owner) + ".i"
                                  : fmt::format("{}.in{}", opName(owner), value->offset() - 1);
    }
    const Node* piece = guardedPiece(*node);
    const std::string name = piece ? piece->s(torch::jit::attr::name) : opName(node);
    return node->outputs().size() > 1 ? fmt::format("{}[{}]", name, value->offset()) : name;
  }

  template <class Values>
  std::vector<std::string> names(const Values& values) const {
    std::vector<std::string> result;
    for (const Value* value : values) {
      result.push_back(nameOf(value));
    }
    return result;
  }

  static std::string tuple(const std::vector<std::string>& elements) {
    return fmt::format("({}{})", fmt::join(elements, ", "), elements.size() == 1 ? "," : "");
  }

  void addBlock(const torch::jit::Block* block, size_t depth) {
    for (const Node* node : block->nodes()) {
      if (!isConstantLike(node) && !guardsPiece(*node)) {
        addNode(node, depth);
      }
    }
    if (depth > 0) {
      const std::string indent(depth * 2, ' ');
      rows_.push_back({indent + "yield", "", "", tuple(names(block->outputs())), "{}"});
    }
  }

  static bool guardsPiece(const Node& node) {
    const auto& uses = node.outputs().empty() ? torch::jit::use_list() : node.outputs().back()->uses();
    return uses.size() == 1 && guardedPiece(*uses[0].user);
  }

  void addNode(const Node* node, size_t depth) {
    const std::string indent(depth * 2, ' ');
    if (const Node* piece = guardedPiece(*node)) {
      const std::string& name = piece->s(torch::jit::attr::name);
      rows_.push_back({indent + "call_module", name, name, tuple(names(piece->inputs())), "{}"});
      return;
    }
    std::vector<std::string> args, kwargs;
    const auto* schema = node->maybeSchema();
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const std::string name = nameOf(node->input(i));
      if (schema && i < schema->arguments().size() && schema->arguments()[i].kwarg_only()) {
        kwargs.push_back(fmt::format("'{}': {}", schema->arguments()[i].name(), name));
      } else {
        args.push_back(name);
      }
    }
    Row row = {indent + "call_function", opName(node), schemaName(node), tuple(args),
               fmt::format("{{{}}}", fmt::join(kwargs, ", "))};
    if (node->hasAttribute(torch::jit::attr::Subgraph)) {
      row[0] = indent + "call_module";
      if (node->hasAttribute(torch::jit::attr::name)) {
        row[2] = node->s(torch::jit::attr::name);
      }
    }
    rows_.push_back(std::move(row));
    for (const torch::jit::Block* inner : node->blocks()) {
      addBlock(inner, depth + 1);
    }
  }

  // Is `name` one that an op of this kind has: "linear", "linear_1"?
  static bool isNameOf(const std::string& name, const Node* node) {
    const std::string kind = node->kind().toUnqualString();
    return name == kind || (name.rfind(kind + "_", 0) == 0 &&
                            name.find_first_not_of("0123456789", kind.size() + 1) == std::string::npos);
  }

  void takeNames(const TableNames& given) {
    inputs_ = given.inputs;
    std::vector<std::string> left = given.ops;
    std::set<std::string> taken(given.ops.begin(), given.ops.end());
    forEachNode(graph_.block(), [&](const Node* node) {
      if (guardedPiece(*node)) {
        return;  // an If that no program has written; it goes by the name of its piece
      }
      const auto found = std::find_if(left.begin(), left.end(),
                                      [&](const std::string& name) { return isNameOf(name, node); });
      if (found != left.end()) {
        ops_[node] = *found;
        left.erase(found);
      } else if (!given.ops.empty() && !isConstantLike(node)) {
        // Not the name of another op of the whole graph, as far as this piece shows.
        std::string name = names_.of(node);
        while (!taken.insert(name).second) {
          name += "'";
        }
        ops_[node] = std::move(name);
      }
    });
  }

  std::string opName(const Node* node) const {
    const auto given = ops_.find(node);
    return given == ops_.end() ? names_.of(node) : given->second;
  }

  const Graph& graph_;
  NodeNames names_;
  std::vector<std::string> inputs_;
  std::unordered_map<const Node*, std::string> ops_;
  std::vector<Row> rows_;
};

// How much of `cell` from `from` on stands in a line: up to a blank, else behind what parts a qualified name,
// else behind an underline. A number is not taken apart.
size_t lineEnd(const std::string& cell, size_t from, size_t width) {
  const auto isDigit = [&](size_t at) { return at < cell.size() && cell[at] >= '0' && cell[at] <= '9'; };
  for (size_t end = from + width; end > from; --end) {
    if (cell[end] == ' ') return end;
  }
  for (size_t end = from + width; end > from; --end) {
    const char last = cell[end - 1];
    if (last == ',' || last == ':' || (last == '.' && !isDigit(end))) return end;
  }
  const size_t underline = cell.rfind('_', from + width - 1);
  return underline != std::string::npos && underline > from ? underline + 1 : from + width;
}

std::vector<std::string> wrapped(const std::string& cell, size_t width) {
  std::vector<std::string> lines;
  size_t from = 0;
  while (cell.size() - from > width) {
    const size_t end = lineEnd(cell, from, width);
    lines.push_back(cell.substr(from, end - from));
    from = std::min(cell.find_first_not_of(' ', end), cell.size());
  }
  lines.push_back(cell.substr(from));
  return lines;
}

// Of what stands between these.
size_t longestPart(const std::string& cell, const char* between) {
  size_t longest = 0;
  for (size_t from = 0; from < cell.size();) {
    const size_t end = std::min(cell.find_first_of(between, from), cell.size());
    longest = std::max(longest, end + (between[0] == ' ' ? 0 : 1) - from);
    from = end + 1;
  }
  return longest;
}

// Arguments give way first, as they wrap best; then the others, down to their longest word, and where that is
// not enough never below what can be read.
std::array<size_t, 5> columnWidths(const std::vector<Row>& rows, size_t width) {
  std::array<size_t, 5> widths{}, words{};
  size_t parts = 0;  // of targets, as "transpose.int" in "aten::transpose.int"
  for (size_t c = 0; c < header.size(); ++c) {
    widths[c] = words[c] = std::string_view(header[c]).size();
    for (const Row& row : rows) {
      widths[c] = std::max(widths[c], row[c].size());
      words[c] = std::max(words[c], longestPart(row[c], " "));
    }
  }
  for (const Row& row : rows) {
    parts = std::max(parts, longestPart(row[2], ":"));
  }
  size_t total = gap.size() * (widths.size() - 1);
  for (size_t w : widths) {
    total += w;
  }
  struct Step {
    size_t column, least;
  };
  for (const Step& step :
       {Step{3, std::max<size_t>(24, words[3])}, Step{4, std::max<size_t>(16, words[4])}, Step{4, words[4]},
        Step{3, words[3]}, Step{2, 20}, Step{1, 16}, Step{2, std::max<size_t>(12, parts)}, Step{3, 24},
        Step{4, 16}, Step{3, 12}, Step{4, 8}, Step{2, 8}, Step{1, 8}, Step{0, 8}}) {
    const size_t excess = total > width ? total - width : 0;
    const size_t spare = widths[step.column] > step.least ? widths[step.column] - step.least : 0;
    widths[step.column] -= std::min(excess, spare);
    total -= std::min(excess, spare);
  }
  return widths;
}

void addLine(std::string& text, const Row& cells, const std::array<size_t, 5>& widths) {
  std::string line;
  for (size_t c = 0; c < cells.size(); ++c) {
    line += (c ? std::string(gap) : "") + fmt::format("{:<{}}", cells[c], widths[c]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
}

}  // namespace

std::string graphTable(const Graph& graph, size_t width, const TableNames& names) {
  const TableBuilder table(graph, names);
  const auto widths = columnWidths(table.rows(), width);
  std::string text;
  Row head, rule;
  for (size_t c = 0; c < header.size(); ++c) {
    head[c] = header[c];
    rule[c] = std::string(widths[c], '-');
  }
  addLine(text, head, widths);
  addLine(text, rule, widths);
  for (const Row& row : table.rows()) {
    std::array<std::vector<std::string>, 5> cells;
    size_t lines = 0;
    for (size_t c = 0; c < row.size(); ++c) {
      cells[c] = wrapped(row[c], widths[c]);
      lines = std::max(lines, cells[c].size());
    }
    for (size_t l = 0; l < lines; ++l) {
      Row line;
      for (size_t c = 0; c < row.size(); ++c) {
        line[c] = l < cells[c].size() ? cells[c][l] : "";
      }
      addLine(text, line, widths);
    }
  }
  return text;
}

}  // namespace faultline
