#include "engine/ir/type_reader.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/ir/guarded.h"
#include "engine/ir/missing_function.h"
#include "engine/ir/nearest.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

// libtorch prints, compares and frees types by recursion.
constexpr size_t kMaxTypeNesting = 64;

using Simple = std::pair<std::string, c10::TypePtr>;

const std::vector<Simple>& simpleTypes() {
  static const std::vector<Simple> types = [] {
    std::vector<Simple> all;
    for (const c10::TypePtr& type : std::vector<c10::TypePtr>{
             c10::AnyType::get(),          c10::AnyListType::get(),   c10::AnyTupleType::get(),
             c10::AnyClassType::get(),     c10::AnyEnumType::get(),   c10::NumberType::get(),
             c10::IntType::get(),          c10::FloatType::get(),     c10::ComplexType::get(),
             c10::BoolType::get(),         c10::StringType::get(),    c10::NoneType::get(),
             c10::DeviceObjType::get(),    c10::GeneratorType::get(), c10::StreamObjType::get(),
             c10::StorageType::get(),      c10::LayoutType::get(),    c10::ScalarTypeType::get(),
             c10::MemoryFormatType::get(), c10::QSchemeType::get(),   c10::QuantizerType::get(),
             c10::CapsuleType::get(),      c10::PyObjectType::get(),  c10::SymIntType::get(),
             c10::SymFloatType::get(),     c10::SymBoolType::get()}) {
      all.emplace_back(type->str(), type);
    }
    // Other spellings, of schemas and of Python.
    all.emplace_back("number", c10::NumberType::get());
    all.emplace_back("None", c10::NoneType::get());
    return all;
  }();
  return types;
}

const std::vector<std::pair<std::string, c10::ScalarType>>& dtypes() {
  static const auto all = [] {
    std::vector<std::pair<std::string, c10::ScalarType>> names;
    for (int8_t i = 0; i < static_cast<int8_t>(c10::ScalarType::Undefined); ++i) {
      names.emplace_back(c10::toString(static_cast<c10::ScalarType>(i)), static_cast<c10::ScalarType>(i));
    }
    return names;
  }();
  return all;
}

const std::vector<std::string>& allTypeNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"Tensor", "Dict",  "Future",   "Await",      "RRef",    "Union",
                                    "List",   "Tuple", "Optional", "NamedTuple", "Function"};
    for (const auto& [name, type] : simpleTypes()) {
      all.push_back(name);
    }
    for (const auto& [name, dtype] : dtypes()) {
      all.push_back(name);
    }
    return all;
  }();
  return names;
}

class TypeReader {
 public:
  explicit TypeReader(Lexer& lexer) : lexer_(lexer) {}

  c10::TypePtr read() {
    const NestingLevel level(lexer_, depth_, kMaxTypeNesting, "types");
    const size_t begin = lexer_.peek().begin;
    c10::TypePtr type = readPlain();
    size_t suffixes = 0;
    while (true) {
      const bool optional = lexer_.peek().is('?');
      if (!optional && !(lexer_.peek().is('[') && lexer_.following() == ']')) {
        return type;
      }
      // Suffixes nest as brackets do.
      if (depth_ + ++suffixes > kMaxTypeNesting) {
        lexer_.fail(fmt::format("types are nested deeper than {} levels", kMaxTypeNesting));
      }
      lexer_.take();
      if (!optional) {
        lexer_.take();
      }
      type = made(begin, [&]() -> c10::TypePtr {
        return optional ? c10::TypePtr(c10::OptionalType::create(type))
                        : c10::TypePtr(c10::ListType::create(type));
      });
    }
  }

 private:
  // libtorch refuses some combinations (a Dict with Tensor[] as key) by throwing.
  template <class Make>
  c10::TypePtr made(size_t begin, Make make) {
    return guarded(lexer_, begin, ErrorKind::Invalid,
                   "no such type: ", [&]() -> c10::TypePtr { return make(); });
  }

  c10::TypePtr readPlain() {
    if (lexer_.peek().is('(')) {
      const size_t begin = lexer_.peek().begin;
      lexer_.take();
      std::vector<c10::TypePtr> elements = readList(')');
      return made(begin, [&] { return c10::TupleType::create(elements); });
    }
    if (lexer_.peek().kind != TokenKind::Word) {
      lexer_.failExpected("a type");
    }
    const Token name = lexer_.take();
    if (name.text == "Tensor") {
      return readTensorTypeFrom(lexer_, name.begin, std::nullopt, true);
    }
    if (const auto dtype = dtypeByName(name.text)) {
      return readTensorTypeFrom(lexer_, name.begin, *dtype, false);
    }
    if (name.text.size() > 6 && name.text.substr(name.text.size() - 6) == "Tensor") {
      if (const auto dtype = dtypeByName(name.text.substr(0, name.text.size() - 6))) {
        return readTensorTypeFrom(lexer_, name.begin, *dtype, true);
      }
    }
    for (const auto& [simple, type] : simpleTypes()) {
      if (simple == name.text) {
        return type;
      }
    }
    return readContainer(name);
  }

  c10::TypePtr readContainer(const Token& name) {
    if (name.text == "NamedTuple") {
      return readNamedTuple(name.begin);
    }
    if (name.text == "Function") {
      return missingFunctionType();
    }
    if (lexer_.peek().is('.')) {
      lexer_.failAt(name.begin,
                    fmt::format("type '{}…' needs the module that declares it, which is not part of IR text",
                                shortName(name.text)),
                    ErrorKind::Unsupported);
    }
    const bool known = name.text == "Dict" || name.text == "Future" || name.text == "Await" ||
                       name.text == "RRef" || name.text == "Union" || name.text == "List" ||
                       name.text == "Optional" || name.text == "Tuple";
    if (!known) {
      lexer_.failAt(name.begin, fmt::format("unknown type '{}'{}", shortName(name.text),
                                            didYouMean(name.text, allTypeNames())));
    }
    const bool round = lexer_.accept('(');
    if (!round) {
      lexer_.expect('[', fmt::format("behind '{}'", name.text));
    }
    const std::vector<c10::TypePtr> parts = readList(round ? ')' : ']');
    const size_t wanted = name.text == "Dict" ? 2 : 1;
    const bool any_number = name.text == "Union" || name.text == "Tuple";
    if (!any_number && parts.size() != wanted) {
      lexer_.failAt(name.begin, fmt::format("'{}' takes {} type{}, found {}", name.text, wanted,
                                            wanted == 1 ? "" : "s", parts.size()));
    }
    return made(name.begin, [&] { return makeContainer(name.text, parts); });
  }

  static std::string shortName(std::string_view name) { return std::string(name.substr(0, 60)); }

  static c10::TypePtr makeContainer(std::string_view name, const std::vector<c10::TypePtr>& parts) {
    if (name == "Dict") {
      return c10::DictType::create(parts[0], parts[1]);
    }
    if (name == "Future") {
      return c10::FutureType::create(parts[0]);
    }
    if (name == "Await") {
      return c10::AwaitType::create(parts[0]);
    }
    if (name == "RRef") {
      return c10::RRefType::create(parts[0]);
    }
    if (name == "Union") {
      return c10::UnionType::create(parts);
    }
    if (name == "List") {
      return c10::ListType::create(parts[0]);
    }
    if (name == "Optional") {
      return c10::OptionalType::create(parts[0]);
    }
    return c10::TupleType::create(parts);
  }

  std::vector<c10::TypePtr> readList(char close) {
    std::vector<c10::TypePtr> types;
    if (lexer_.accept(close)) {
      return types;
    }
    do {
      types.push_back(read());
    } while (lexer_.accept(','));
    lexer_.expect(close, "or ',' in a list of types");
    return types;
  }

  c10::TypePtr readNamedTuple(size_t begin) {
    std::string qualified;
    if (lexer_.accept('[')) {
      do {
        qualified += (qualified.empty() ? "" : ".") + readWord("the name of the tuple");
      } while (lexer_.accept('.'));
      lexer_.expect(']', "behind the name of the tuple");
    }
    lexer_.expect('(', "before the fields of a NamedTuple");
    std::vector<std::string> names;
    std::vector<c10::TypePtr> types;
    if (!lexer_.accept(')')) {
      do {
        names.push_back(readWord("the name of a field"));
        lexer_.expect(':', "between the name and the type of a field");
        types.push_back(read());
      } while (lexer_.accept(','));
      lexer_.expect(')', "or ',' in the fields of a NamedTuple");
    }
    std::optional<c10::QualifiedName> name;
    if (!qualified.empty()) name.emplace(qualified);
    return made(begin, [&] { return c10::TupleType::createNamed(name, names, types); });
  }

  std::string readWord(std::string_view what) {
    if (lexer_.peek().kind != TokenKind::Word) {
      lexer_.failExpected(what);
    }
    return std::string(lexer_.take().text);
  }

  Lexer& lexer_;
  size_t depth_ = 0;
};

}  // namespace

c10::TypePtr readTypeFrom(Lexer& lexer) { return TypeReader(lexer).read(); }

std::optional<c10::ScalarType> dtypeByName(std::string_view name) {
  for (const auto& [known, dtype] : dtypes()) {
    if (known == name) {
      return dtype;
    }
  }
  return std::nullopt;
}

c10::Device readDeviceFrom(Lexer& lexer) {
  if (lexer.peek().kind != TokenKind::Word) {
    lexer.failExpected("a device");
  }
  const Token name = lexer.take();
  std::string text(name.text);
  if (lexer.peek().is(':')) {
    lexer.take();
    if (lexer.peek().kind != TokenKind::Number) {
      lexer.failExpected("the index of a device");
    }
    text += ":" + std::string(lexer.take().text);
  }
  try {
    return c10::Device(text);
  } catch (const std::exception&) {
    lexer.failAt(name.begin,
                 fmt::format("unknown device '{}': expected cpu, cuda, cuda:0, meta or another that torch "
                             "knows",
                             text.substr(0, 60)));
  }
}

int64_t readIntFrom(Lexer& lexer, std::string_view what) {
  const size_t begin = lexer.peek().begin;
  const bool negative = lexer.accept('-');
  if (lexer.peek().kind != TokenKind::Number) {
    lexer.failExpected(what);
  }
  const std::string digits = (negative ? "-" : "") + std::string(lexer.take().text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) {
    lexer.failAt(begin, fmt::format("{} does not fit into 64 bits", digits.substr(0, 60)));
  }
  if (error != std::errc() || end != digits.data() + digits.size()) {
    lexer.failAt(begin, fmt::format("expected {}, found '{}'", what, digits.substr(0, 60)));
  }
  return value;
}

Result<c10::TypePtr> readType(std::string_view text) {
  try {
    Lexer lexer(text, 1);
    c10::TypePtr type = readTypeFrom(lexer);
    if (lexer.peek().kind != TokenKind::End) {
      lexer.failExpected("the end of the type");
    }
    return type;
  } catch (ReadFailure& failure) {
    return tl::make_unexpected(std::move(failure.error));
  }
}

}  // namespace faultline
