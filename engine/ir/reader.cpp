#include <fmt/format.h>

#include "engine/ir/attribute_reader.h"
#include "engine/ir/nearest.h"
#include "engine/ir/places.h"
#include "engine/ir/type_reader.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::Block;

// libtorch clones, prints and lints blocks and subgraphs by recursion.
constexpr size_t kMaxGraphNesting = 64;
// Copying a graph makes names unique by counting up what stands behind the last dot, as an int64.
constexpr size_t kMaxSuffixDigits = 18;

bool isNumber(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "prim::DifferentiableGraph_0" -> "prim::DifferentiableGraph"; empty: no number at the end.
std::string withoutNumber(const std::string& kind) {
  const size_t underscore = kind.rfind('_');
  if (underscore == std::string::npos || underscore == 0 || underscore + 1 == kind.size() ||
      kind[underscore - 1] == ':' || !isNumber(std::string_view(kind).substr(underscore + 1))) {
    return "";
  }
  return kind.substr(0, underscore);
}

// The name of a tail as nodes refer to it: "prim::DifferentiableGraph_0", "@ReverseSubgraph_1".
std::string readTailName(Lexer& lexer) {
  const bool attribute = lexer.accept('@');
  if (lexer.peek().kind != TokenKind::Word) {
    lexer.failExpected(attribute ? "a name behind '@'" : "the node or @name that this graph belongs to");
  }
  std::string name = (attribute ? "@" : "") + std::string(lexer.take().text);
  if (!attribute) {
    lexer.expect("::", "in the kind of the node that this graph belongs to");
    if (lexer.peek().kind != TokenKind::Word) {
      lexer.failExpected("the kind of the node that this graph belongs to");
    }
    name += "::" + std::string(lexer.take().text);
  }
  return name;
}

// All tails of the text. The kind of a node cannot be changed once it is made, so it must be known before
// whether `ns::op_0` is an operator or `ns::op` with a tail.
std::unordered_set<std::string> tailNames(std::string_view text, size_t first_line) {
  std::unordered_set<std::string> names;
  if (text.find("with") == std::string_view::npos) {
    return names;
  }
  Lexer lexer(text, first_line);
  while (lexer.peek().kind != TokenKind::End) {
    if (!lexer.accept("with")) {
      lexer.take();
      continue;
    }
    if (lexer.peek().kind == TokenKind::Word || lexer.peek().is('@')) {
      const Token first = lexer.mark();
      try {
        names.insert(readTailName(lexer));
      } catch (const ReadFailure&) {
        lexer.rewind(first);  // said with its place when the reader gets there
        lexer.take();
      }
    }
  }
  return names;
}

class GraphReader {
 public:
  GraphReader(std::string_view text, size_t first_line, NodePlaces* places)
      : tails_(tailNames(text, first_line)), lexer_(text, first_line), text_(text), places_(places) {
    counted_.line = first_line;
  }

  std::shared_ptr<Graph> read() {
    std::shared_ptr<Graph> graph = readBody(0);
    while (lexer_.peek().is("with")) {
      readTail();
    }
    if (lexer_.peek().kind != TokenKind::End) {
      lexer_.failExpected("'with' or the end of the text");
    }
    for (const auto& [name, references] : references_) {
      if (!references.empty()) {
        failMissingTail(references.back().begin, name);
      }
    }
    return graph;
  }

 private:
  struct Reference {
    size_t graph;  // how many graphs stand before the one that refers
    size_t depth;
    size_t begin;
    std::function<void(std::shared_ptr<Graph>)> set;
  };

  [[noreturn]] void failMissingTail(size_t begin, const std::string& name) {
    lexer_.failAt(begin, fmt::format("no graph for '{0}': expected `with {0} = graph(…)` behind the graph",
                                     shown(name)));
  }

  static std::string shown(std::string_view text) { return std::string(text.substr(0, 60)); }

  void readTail() {
    lexer_.take();
    const size_t begin = lexer_.peek().begin;
    const std::string name = readTailName(lexer_);
    // libtorch numbers the subgraphs of each graph from 0 and prints them right behind it: the last graph
    // that still waits for this name is meant.
    const auto found = references_.find(name);
    if (found == references_.end() || found->second.empty()) {
      lexer_.failAt(
          begin, fmt::format("no node above refers to '{}', or another graph was given for it", shown(name)));
    }
    const Reference reference = std::move(found->second.back());
    found->second.pop_back();
    if (reference.depth >= kMaxGraphNesting) {
      lexer_.failAt(begin, fmt::format("graphs are nested deeper than {} levels", kMaxGraphNesting));
    }
    lexer_.expect('=', "between the name of a graph and 'graph'");
    reference.set(readBody(reference.depth + 1));
  }

  void refer(const std::string& name, size_t begin, std::function<void(std::shared_ptr<Graph>)> set) {
    std::vector<Reference>& waiting = references_[name];
    if (!waiting.empty() && waiting.back().graph == graphs_) {
      lexer_.failAt(begin,
                    fmt::format("'{}' is referred to twice in one graph: each node has a graph of its own",
                                shown(name)));
    }
    waiting.push_back({graphs_, depth_, begin, std::move(set)});
  }

  std::shared_ptr<Graph> readBody(size_t depth) {
    ++graphs_;
    depth_ = depth;
    values_.clear();
    taken_.clear();
    order_.clear();
    graph_ = std::make_shared<Graph>();
    lexer_.expect("graph", "at the beginning of a graph");
    readBlockInputs(*graph_->block());
    readNodes(*graph_->block(), "return");
    readReturns(*graph_->block());
    return std::move(graph_);
  }

  // ---- values ----

  void readBlockInputs(Block& block) {
    lexer_.expect('(', "before inputs");
    if (!lexer_.accept(')')) {
      do {
        const Token name = takeValueName();
        Value* value = block.addInput();
        nameValue(value, name);
        readTypeOf(value);
        define(value, name);
      } while (lexer_.accept(','));
      lexer_.expect(')', "or ',' behind an input");
    }
    lexer_.expect(':', "behind inputs");
  }

  Token takeValueName() {
    if (lexer_.peek().kind != TokenKind::ValueName) {
      lexer_.failExpected("a value (%name)");
    }
    return lexer_.take();
  }

  // A number is no name: libtorch numbers values without one.
  void nameValue(Value* value, const Token& name) {
    if (name.decoded.empty()) {
      lexer_.failAt(name.begin, "a value needs a name");
    }
    if (!taken_.insert(name.decoded).second) {
      lexer_.failAt(name.begin, fmt::format("'%{}' is made twice", shown(name.decoded)));
    }
    if (isNumber(name.decoded)) {
      return;
    }
    const size_t dot = name.decoded.rfind('.');
    if (dot != std::string::npos && name.decoded.size() - dot - 1 > kMaxSuffixDigits &&
        isNumber(std::string_view(name.decoded).substr(dot + 1))) {
      lexer_.failAt(name.begin, fmt::format("the number behind the last '.' of a name has at most {} digits",
                                            kMaxSuffixDigits));
    }
    value->setDebugName(name.decoded);
  }

  void readTypeOf(Value* value) {
    if (lexer_.accept(':')) {
      value->setType(readTypeFrom(lexer_));
    }
  }

  void define(Value* value, const Token& name) {
    values_.emplace(name.decoded, value);
    order_.push_back(name.decoded);
  }

  Value* takeValue() {
    const Token name = takeValueName();
    const auto found = values_.find(name.decoded);
    if (found == values_.end()) {
      lexer_.failAt(name.begin, fmt::format("'%{}' is not made before it is used{}", shown(name.decoded),
                                            didYouMean(name.decoded, order_)));
    }
    return found->second;
  }

  template <class Take>
  void readValues(std::string_view where, Take take) {
    lexer_.expect('(', where);
    if (lexer_.accept(')')) {
      return;
    }
    do {
      take(takeValue());
    } while (lexer_.accept(','));
    lexer_.expect(')', "or ',' in a list of values");
  }

  void readReturns(Block& block) {
    readValues("before what is returned", [&](Value* value) { block.registerOutput(value); });
  }

  // ---- nodes ----

  void readNodes(Block& block, std::string_view end) {
    const NestingLevel level(lexer_, block_depth_, kMaxBlockNesting, "blocks");
    while (!lexer_.accept(end)) {
      const bool node = lexer_.peek().kind == TokenKind::ValueName || lexer_.peek().kind == TokenKind::Word ||
                        lexer_.peek().is('=') || lexer_.peek().is('(') || lexer_.peek().is('^');
      if (!node || lexer_.peek().is("return") || lexer_.peek().is("with")) {
        lexer_.failExpected(fmt::format("a node or '{}'", end));
      }
      readNode(block);
    }
  }

  // A name and where it stands; its type is read when the node is there to hold it.
  struct Output {
    Token name;
    c10::TypePtr type;
  };

  std::vector<Output> readOutputs() {
    std::vector<Output> outputs;
    if (lexer_.peek().kind == TokenKind::Word || lexer_.peek().is('^')) {
      return outputs;  // no outputs and no '=', as libtorch's own parser wants it
    }
    if (lexer_.accept('(')) {
      lexer_.expect(')', "as in `() = …`");
    } else if (!lexer_.peek().is('=')) {
      do {
        Output output{takeValueName(), c10::TensorType::get()};
        if (lexer_.accept(':')) {
          output.type = readTypeFrom(lexer_);
        }
        outputs.push_back(std::move(output));
      } while (lexer_.accept(','));
    }
    lexer_.expect('=', "or ',' behind an output");
    return outputs;
  }

  void readNode(Block& block) {
    const std::vector<Output> outputs = readOutputs();
    const size_t begin = lexer_.peek().begin;
    const std::string written = readKind();
    const bool has_tail = tails_.count(written) != 0 && !withoutNumber(written).empty();
    Node* node = graph_->create(c10::Symbol::fromQualString(has_tail ? withoutNumber(written) : written), 0);
    for (const Output& output : outputs) {
      Value* value = node->addOutput();
      nameValue(value, output.name);
      value->setType(output.type);
    }
    static const c10::Symbol warn = c10::Symbol::fromQualString("aten::warn");
    if (node->kind() == warn) {
      // The interpreter ends the process at a warning without a source, and finds no text in one without a
      // file.
      node->setSourceRange({std::make_shared<torch::jit::Source>("", "<graph>", placeOf(begin).line), 0, 0});
    }
    if (places_ != nullptr) {
      places_->emplace(node, placeOf(begin));
    }
    if (has_tail) {
      refer(written, begin,
            [node](std::shared_ptr<Graph> graph) { node->g_(c10::attr::Subgraph, std::move(graph)); });
    }
    if (lexer_.peek().is('[')) {
      readAttributes(lexer_, *node, [&](const std::string& name, size_t at, auto set) {
        refer("@" + name, at, std::move(set));
      });
    }
    readValues("before the inputs of a node", [&](Value* value) { node->addInput(value); });
    block.appendNode(node);
    skipScope();
    readBlocks(*node);
    // Not before: the blocks of a node do not see its outputs.
    for (size_t i = 0; i < outputs.size(); ++i) {
      define(node->outputs()[i], outputs[i].name);
    }
  }

  // Nodes come in the order of the text, so its line ends are counted once.
  SourceLocation placeOf(size_t offset) {
    for (; counted_to_ < offset; ++counted_to_) {
      const bool line_end = text_[counted_to_] == '\n';
      counted_.line += line_end ? 1 : 0;
      counted_.column = line_end ? 1 : counted_.column + 1;
    }
    return counted_;
  }

  std::string readKind() {
    if (lexer_.peek().is('^')) {
      lexer_.failAt(lexer_.peek().begin, "Python functions cannot be read from text", ErrorKind::Unsupported);
    }
    if (lexer_.peek().kind != TokenKind::Word) {
      lexer_.failExpected("the kind of a node, as in aten::relu");
    }
    const Token space = lexer_.take();
    lexer_.expect("::", "behind the namespace of a node's kind");
    if (lexer_.peek().kind != TokenKind::Word) {
      lexer_.failExpected("the name of an operator behind '::'");
    }
    std::string kind = std::string(space.text) + "::" + std::string(lexer_.take().text);
    checkKind(space, kind);
    return kind;
  }

  void checkKind(const Token& space, const std::string& kind) {
    for (const std::string_view reserved : {"attr", "scope", "user", "namespaces", "dimname"}) {
      if (space.text == reserved) {
        lexer_.failAt(space.begin, fmt::format("'{}' is no namespace of operators", reserved));
      }
    }
    if (kind == "prim::Param" || kind == "prim::Return") {
      lexer_.failAt(
          space.begin,
          fmt::format("'{}' is made by libtorch only: inputs and returns stand in their places", kind));
    }
    // libtorch takes nodes of this kind for a class that cannot be made without Python.
    if (kind == "prim::PythonOp") {
      lexer_.failAt(space.begin, "Python functions cannot be read from text", ErrorKind::Unsupported);
    }
    if (space.text == "prim" && tails_.count(kind) == 0 && !withoutNumber(kind).empty()) {
      failMissingTail(space.begin, kind);
    }
  }

  // ", scope: module/linear": where a traced module made the node. Not kept.
  void skipScope() {
    if (!lexer_.accept(',')) {
      return;
    }
    lexer_.expect("scope", "behind the ',' after a node");
    if (!lexer_.peek().is(':')) {
      lexer_.failExpected("':' behind 'scope'");
    }
    lexer_.skipLine();
  }

  void readBlocks(Node& node) {
    while (lexer_.peek().kind == TokenKind::Word && lexer_.following() == '(' &&
           lexer_.peek().text.substr(0, 5) == "block") {
      const std::string wanted = fmt::format("block{}", node.blocks().size());
      lexer_.expect(wanted, "next");
      Block& block = *node.addBlock();
      readBlockInputs(block);
      readNodes(block, "->");
      readReturns(block);
    }
  }

  const std::unordered_set<std::string> tails_;
  Lexer lexer_;
  const std::string_view text_;
  NodePlaces* const places_;
  SourceLocation counted_{1, 1};
  size_t counted_to_ = 0;
  std::map<std::string, std::vector<Reference>> references_;
  size_t graphs_ = 0;
  size_t depth_ = 0;
  size_t block_depth_ = 0;

  // Of the graph at hand.
  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string, Value*> values_;
  std::unordered_set<std::string> taken_;
  std::vector<std::string> order_;
};

Result<std::shared_ptr<Graph>> readNoting(std::string_view text, size_t first_line, NodePlaces* places) {
  try {
    return GraphReader(text, first_line, places).read();
  } catch (ReadFailure& failure) {
    return tl::make_unexpected(std::move(failure.error));
  } catch (const c10::Error& error) {
    return fail(ErrorKind::Unsupported,
                "torch refuses this graph: " + std::string(error.what_without_backtrace()));
  }
}

}  // namespace

Result<std::shared_ptr<Graph>> readGraph(std::string_view text, size_t first_line) {
  return readNoting(text, first_line, nullptr);
}

Result<std::shared_ptr<Graph>> readGraphWithPlaces(std::string_view text, size_t first_line,
                                                   NodePlaces& places) {
  return readNoting(text, first_line, &places);
}

}  // namespace faultline
