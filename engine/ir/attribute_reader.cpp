#include "engine/ir/attribute_reader.h"

#include <fmt/format.h>

#include <unordered_set>

#include "engine/ir/literal.h"
#include "engine/ir/nearest.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;
using torch::jit::Graph;
using torch::jit::Node;

const std::pair<AttributeKind, const char*> kKinds[] = {
    {AttributeKind::f, "f"},   {AttributeKind::fs, "fs"},   {AttributeKind::c, "c"},
    {AttributeKind::cs, "cs"}, {AttributeKind::i, "i"},     {AttributeKind::is, "is"},
    {AttributeKind::s, "s"},   {AttributeKind::ss, "ss"},   {AttributeKind::t, "t"},
    {AttributeKind::ts, "ts"}, {AttributeKind::g, "g"},     {AttributeKind::gs, "gs"},
    {AttributeKind::ty, "ty"}, {AttributeKind::tys, "tys"}, {AttributeKind::ival, "ival"},
};

const std::vector<std::string>& knownNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    const auto add = [&](std::string_view space, const char* name) {
      if (space == "attr") {
        all.emplace_back(name);
      }
    };
#define FAULTLINE_ADD(space, name) add(#space, #name);
    FORALL_NS_SYMBOLS(FAULTLINE_ADD)
#undef FAULTLINE_ADD
    // Written by libtorch, but not in its list.
    for (const char* name :
         {"profiled_type", "seen_none", "types", "fallback", "warn_id", "num_profiled", "chunks", "dim"}) {
      all.emplace_back(name);
    }
    return all;
  }();
  return names;
}

bool allParts(const Literal& list, std::initializer_list<LiteralKind> kinds) {
  return std::all_of(list.parts.begin(), list.parts.end(), [&](const Literal& part) {
    return std::find(kinds.begin(), kinds.end(), part.kind) != kinds.end();
  });
}

AttributeKind kindOfList(const Literal& list) {
  if (allParts(list, {LiteralKind::Int, LiteralKind::Bool})) {
    return AttributeKind::is;
  }
  if (allParts(list, {LiteralKind::Int, LiteralKind::Float})) {
    return AttributeKind::fs;
  }
  if (allParts(list, {LiteralKind::Int, LiteralKind::Float, LiteralKind::Complex})) {
    return AttributeKind::cs;
  }
  if (allParts(list, {LiteralKind::String})) {
    return AttributeKind::ss;
  }
  if (allParts(list, {LiteralKind::Tensor})) {
    return AttributeKind::ts;
  }
  if (allParts(list, {LiteralKind::Graph})) {
    return AttributeKind::gs;
  }
  return allParts(list, {LiteralKind::Type}) ? AttributeKind::tys : AttributeKind::ival;
}

// libtorch prints an empty list attribute as annotate(List[int], []), which is also how it prints an empty
// list value.
std::optional<AttributeKind> kindOfEmpty(const Literal& typed) {
  if (typed.parts[0].kind != LiteralKind::List || !typed.parts[0].parts.empty() ||
      typed.type->kind() != c10::TypeKind::ListType) {
    return std::nullopt;
  }
  switch (typed.type->expectRef<c10::ListType>().getElementType()->kind()) {
    case c10::TypeKind::IntType:
      return AttributeKind::is;
    case c10::TypeKind::FloatType:
      return AttributeKind::fs;
    case c10::TypeKind::ComplexType:
      return AttributeKind::cs;
    case c10::TypeKind::StringType:
      return AttributeKind::ss;
    case c10::TypeKind::TensorType:
      return AttributeKind::ts;
    default:
      return std::nullopt;
  }
}

AttributeKind kindByLook(const Literal& literal) {
  switch (literal.kind) {
    case LiteralKind::Bool:
    case LiteralKind::Int:
      return AttributeKind::i;
    case LiteralKind::Float:
      return AttributeKind::f;
    case LiteralKind::Complex:
      return AttributeKind::c;
    case LiteralKind::String:
      return AttributeKind::s;
    case LiteralKind::Tensor:
      return AttributeKind::t;
    case LiteralKind::Graph:
      return AttributeKind::g;
    case LiteralKind::Type:
      return AttributeKind::ty;
    case LiteralKind::List:
      return kindOfList(literal);
    case LiteralKind::Typed:
      return kindOfEmpty(literal).value_or(AttributeKind::ival);
    default:
      return AttributeKind::ival;
  }
}

class AttributeReader {
 public:
  AttributeReader(Lexer& lexer, Node& node, const GraphReference& refer)
      : lexer_(lexer), node_(node), refer_(refer) {}

  void read() {
    lexer_.expect('[', "before attributes");
    if (lexer_.accept(']')) {
      return;
    }
    do {
      readOne();
    } while (lexer_.accept(','));
    lexer_.expect(']', "or ',' in attributes");
  }

 private:
  void readOne() {
    if (lexer_.peek().kind != TokenKind::Word) {
      lexer_.failExpected("the name of an attribute");
    }
    const Token name = lexer_.take();
    const std::string text(name.text);
    std::optional<AttributeKind> kind = readKind();
    if (!kind && !isKnownAttribute(text)) {
      lexer_.failAt(name.begin,
                    fmt::format("unknown attribute '{}'{}; one of your own says its kind, as in '{}:i=1'",
                                text.substr(0, 60), didYouMean(text, knownNames()), text.substr(0, 60)));
    }
    const c10::Symbol symbol = c10::Symbol::attr(text);
    if (node_.hasAttribute(symbol)) {
      lexer_.failAt(name.begin, fmt::format("attribute '{}' stands twice", text.substr(0, 60)));
    }
    lexer_.expect('=', "behind the name of an attribute");

    const bool constant = node_.kind() == c10::prim::Constant && symbol == c10::attr::value &&
                          node_.outputs().size() == 1 && !kind;
    const c10::TypePtr expected = constant ? node_.output()->type() : nullptr;
    const bool as_types = kind == AttributeKind::ty || kind == AttributeKind::tys;
    const Literal literal = readLiteral(lexer_, expected, as_types);
    if (constant && setConstant(symbol, literal, expected)) {
      return;
    }
    set(symbol, literal, kind ? *kind : kindByLook(literal), kind.has_value());
  }

  std::optional<AttributeKind> readKind() {
    if (!lexer_.accept(':')) {
      return std::nullopt;
    }
    const Token word = lexer_.take();
    const auto kind = attributeKindByName(word.text);
    if (!kind || word.kind != TokenKind::Word) {
      lexer_.failAt(word.begin,
                    "expected the kind of an attribute: i, is, f, fs, c, cs, s, ss, t, ts, g, gs, ty, tys or "
                    "ival");
    }
    return kind;
  }

  // How TorchScript keeps constants: lists, tuples and dicts as a value of their type, floats as `f` even if
  // the text says 1. Gives false for everything that is kept as it looks.
  bool setConstant(c10::Symbol name, const Literal& literal, const c10::TypePtr& type) {
    switch (type->kind()) {
      case c10::TypeKind::ListType:
      case c10::TypeKind::TupleType:
      case c10::TypeKind::DictType:
        node_.ival_(name, valueOfType(lexer_, literal, type));
        return true;
      case c10::TypeKind::FloatType:
        if (literal.kind != LiteralKind::Int) {
          return false;
        }
        node_.f_(name, literal.real);
        return true;
      case c10::TypeKind::ComplexType:
        if (literal.kind != LiteralKind::Int && literal.kind != LiteralKind::Float) {
          return false;
        }
        node_.c_(name, c10::complex<double>(literal.real, 0));
        return true;
      default:
        return false;
    }
  }

  void set(c10::Symbol name, const Literal& literal, AttributeKind kind, bool said) {
    switch (kind) {
      case AttributeKind::i:
        require(literal, {LiteralKind::Int, LiteralKind::Bool}, "an int");
        node_.i_(name, literal.integer);
        break;
      case AttributeKind::f:
        require(literal, {LiteralKind::Int, LiteralKind::Float}, "a float");
        node_.f_(name, literal.real);
        break;
      case AttributeKind::c:
        node_.c_(name, complexOf(literal));
        break;
      case AttributeKind::s:
        require(literal, {LiteralKind::String}, "a string");
        node_.s_(name, literal.text);
        break;
      case AttributeKind::t:
        require(literal, {LiteralKind::Tensor}, "a tensor");
        node_.t_(name, literal.tensor);
        break;
      case AttributeKind::ty:
        require(literal, {LiteralKind::Type}, "a type");
        node_.ty_(name, literal.type);
        break;
      case AttributeKind::g:
        if (said && literal.kind == LiteralKind::None) {
          node_.g_(name, nullptr);
          break;
        }
        require(literal, {LiteralKind::Graph}, "'@' and the name of a graph");
        refer_(literal.text, literal.begin,
               [node = &node_, name](std::shared_ptr<Graph> graph) { node->g_(name, std::move(graph)); });
        node_.g_(name, nullptr);
        break;
      case AttributeKind::ival:
        node_.ival_(name, valueOfType(lexer_, literal, c10::AnyType::get()));
        break;
      default:
        setList(name, literal, kind, said);
    }
  }

  void setList(c10::Symbol name, const Literal& literal, AttributeKind kind, bool said) {
    // An annotated empty list has its kind from the annotation.
    const Literal& list = literal.kind == LiteralKind::Typed && !said ? literal.parts[0] : literal;
    require(list, {LiteralKind::List}, "a list");
    switch (kind) {
      case AttributeKind::is:
        node_.is_(name, collect<int64_t>(list, [&](const Literal& part) {
                    require(part, {LiteralKind::Int, LiteralKind::Bool}, "an int");
                    return part.integer;
                  }));
        break;
      case AttributeKind::fs:
        node_.fs_(name, collect<double>(list, [&](const Literal& part) {
                    require(part, {LiteralKind::Int, LiteralKind::Float}, "a float");
                    return part.real;
                  }));
        break;
      case AttributeKind::cs:
        node_.cs_(name,
                  collect<c10::complex<double>>(list, [&](const Literal& part) { return complexOf(part); }));
        break;
      case AttributeKind::ss:
        node_.ss_(name, collect<std::string>(list, [&](const Literal& part) {
                    require(part, {LiteralKind::String}, "a string");
                    return part.text;
                  }));
        break;
      case AttributeKind::ts:
        node_.ts_(name, collect<at::Tensor>(list, [&](const Literal& part) {
                    require(part, {LiteralKind::Tensor}, "a tensor");
                    return part.tensor;
                  }));
        break;
      case AttributeKind::tys:
        node_.tys_(name, collect<c10::TypePtr>(list, [&](const Literal& part) {
                     require(part, {LiteralKind::Type}, "a type");
                     return part.type;
                   }));
        break;
      default:
        setGraphs(name, list);
    }
  }

  void setGraphs(c10::Symbol name, const Literal& list) {
    for (size_t i = 0; i < list.parts.size(); ++i) {
      require(list.parts[i], {LiteralKind::Graph}, "'@' and the name of a graph");
      refer_(list.parts[i].text, list.parts[i].begin, [node = &node_, name, i](std::shared_ptr<Graph> graph) {
        std::vector<std::shared_ptr<Graph>> graphs = node->gs(name);
        graphs[i] = std::move(graph);
        node->gs_(name, std::move(graphs));
      });
    }
    node_.gs_(name, std::vector<std::shared_ptr<Graph>>(list.parts.size()));
  }

  template <class T, class Convert>
  std::vector<T> collect(const Literal& list, Convert convert) {
    std::vector<T> values;
    values.reserve(list.parts.size());
    for (const Literal& part : list.parts) {
      values.push_back(convert(part));
    }
    return values;
  }

  c10::complex<double> complexOf(const Literal& literal) {
    require(literal, {LiteralKind::Complex, LiteralKind::Float, LiteralKind::Int}, "a complex number");
    return c10::complex<double>(literal.real, literal.imaginary);
  }

  void require(const Literal& literal, std::initializer_list<LiteralKind> kinds, std::string_view what) {
    if (std::find(kinds.begin(), kinds.end(), literal.kind) == kinds.end()) {
      lexer_.failAt(literal.begin, fmt::format("expected {}", what));
    }
  }

  Lexer& lexer_;
  Node& node_;
  const GraphReference& refer_;
};

}  // namespace

const char* attributeKindName(AttributeKind kind) {
  for (const auto& [known, name] : kKinds) {
    if (known == kind) {
      return name;
    }
  }
  return nullptr;
}

std::optional<AttributeKind> attributeKindByName(std::string_view name) {
  for (const auto& [kind, known] : kKinds) {
    if (known == name) {
      return kind;
    }
  }
  return std::nullopt;
}

bool isKnownAttribute(std::string_view name) {
  static const std::unordered_set<std::string> known(knownNames().begin(), knownNames().end());
  return name.substr(0, 10) == "faultline_" || known.count(std::string(name)) != 0;
}

void readAttributes(Lexer& lexer, Node& node, const GraphReference& refer) {
  AttributeReader(lexer, node, refer).read();
}

}  // namespace faultline
