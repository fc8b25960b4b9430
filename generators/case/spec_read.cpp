#include <cmath>

#include <fmt/format.h>

#include "engine/ir/base64.h"
#include "generators/case/spec_text.h"

namespace faultline {
namespace {

constexpr size_t kMaxDepth = 32;
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

class SpecReader {
 public:
  explicit SpecReader(Scanner& scanner) : scanner_(scanner) {}

  Result<InputSpec> read(size_t depth) {
    if (depth > kMaxDepth)
      return scanner_.expected(fmt::format("at most {} nested lists", kMaxDepth), ErrorKind::Invalid);
    char c = scanner_.peek();
    if (c == '[') return readElements(InputSpec::Kind::List, ']', depth);
    if (c == '(') return readElements(InputSpec::Kind::Tuple, ')', depth);
    if (c == '"') return readString();
    if (c == '@') return readSameAs();
    if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')) return readNumber();
    return readWord();
  }

 private:
  static InputSpec make(InputSpec::Kind kind) {
    InputSpec spec;
    spec.kind = kind;
    return spec;
  }

  Result<InputSpec> readElements(InputSpec::Kind kind, char close, size_t depth) {
    InputSpec spec = make(kind);
    scanner_.advance();
    scanner_.skipBlanks();
    while (scanner_.peek() != close) {
      auto element = read(depth + 1);
      if (!element) return element;
      spec.elements.push_back(std::move(*element));
      scanner_.skipBlanks();
      if (scanner_.peek() == close) break;
      if (!scanner_.accept(",")) return scanner_.expected(fmt::format("',' or '{}'", close));
      scanner_.skipBlanks();
    }
    scanner_.advance();
    return spec;
  }

  Result<InputSpec> readString() {
    auto text = scanner_.quoted();
    if (!text) return tl::make_unexpected(text.error());
    InputSpec spec = make(InputSpec::Kind::String);
    spec.string_value = std::move(*text);
    return spec;
  }

  Result<InputSpec> readSameAs() {
    scanner_.advance();
    auto index = scanner_.unsignedInteger("the number of an earlier input behind '@'");
    if (!index) return tl::make_unexpected(index.error());
    InputSpec spec = make(InputSpec::Kind::SameAs);
    spec.same_as = *index;
    return spec;
  }

  // What has a point, an exponent, inf or nan is a double.
  Result<InputSpec> readNumber() {
    Scanner ahead = scanner_;
    auto value = ahead.number("a number");
    if (!value) return tl::make_unexpected(value.error());
    std::string_view text = scanner_.rest().substr(0, ahead.position() - scanner_.position());
    if (text.find_first_of(".eEn") == std::string_view::npos) return readInteger();
    scanner_ = ahead;
    InputSpec spec = make(InputSpec::Kind::Double);
    spec.double_value = *value;
    return spec;
  }

  Result<InputSpec> readInteger() {
    scanner_.accept("+");
    auto value = scanner_.integer("an integer");
    if (!value) return tl::make_unexpected(value.error());
    InputSpec spec = make(InputSpec::Kind::Int);
    spec.int_value = *value;
    return spec;
  }

  Result<InputSpec> readWord() {
    Scanner begin = scanner_;
    scanner_.accept("torch.");
    std::string_view word = scanner_.word();
    if (scanner_.peek() == '[' && !word.empty()) return readTensor(begin, word);
    if (scanner_.peek() == '=' && begin.position() + word.size() == scanner_.position()) {
      scanner_.advance();
      if (word == "int") return readInteger();
      if (word == "str") return readString();
      if (word == "float" || word == "double") {
        auto value = scanner_.number("a number");
        if (!value) return tl::make_unexpected(value.error());
        InputSpec spec = make(InputSpec::Kind::Double);
        spec.double_value = *value;
        return spec;
      }
      if (word == "bool") {
        word = scanner_.word();
        if (auto spec = readBool(word)) return *spec;
        scanner_ = begin;
        return scanner_.expected("bool=true or bool=false");
      }
    } else if (auto spec = readBool(word)) {
      return *spec;
    } else if (word == "none" || word == "None") {
      return make(InputSpec::Kind::None);
    } else if (word == "inf" || word == "nan") {
      scanner_ = begin;
      return readNumber();
    }
    scanner_ = begin;
    return scanner_.expected(
        "an input such as float32[4,8]:grad, 3, 0.5, true, \"text\", none, [..], (..) or @0");
  }

  static std::optional<InputSpec> readBool(std::string_view word) {
    InputSpec spec = make(InputSpec::Kind::Bool);
    spec.bool_value = word == "true" || word == "True";
    if (spec.bool_value || word == "false" || word == "False") return spec;
    return std::nullopt;
  }

  Result<InputSpec> readTensor(const Scanner& begin, std::string_view word) {
    InputSpec spec;
    auto dtype = readDtype(word);
    if (!dtype) {
      dtype.error().where = begin.where();
      return tl::make_unexpected(dtype.error());
    }
    spec.dtype = *dtype;
    auto sizes = readIntegers("a size");
    if (!sizes) return tl::make_unexpected(sizes.error());
    spec.sizes = std::move(*sizes);
    std::set<std::string> given;
    while (atFlag()) {
      if (auto flag = readFlag(spec, given); !flag) return tl::make_unexpected(flag.error());
    }
    if (auto checked = checkInputSpec(spec); !checked) {
      checked.error().where = begin.where();
      return tl::make_unexpected(checked.error());
    }
    return spec;
  }

  Result<std::vector<int64_t>> readIntegers(std::string_view what) {
    std::vector<int64_t> integers;
    if (auto open = scanner_.expect("["); !open) return tl::make_unexpected(open.error());
    scanner_.skipBlanks();
    while (scanner_.peek() != ']') {
      auto value = scanner_.integer(what);
      if (!value) return tl::make_unexpected(value.error());
      integers.push_back(*value);
      scanner_.skipBlanks();
      if (scanner_.peek() == ']') break;
      if (!scanner_.accept(",")) return scanner_.expected("',' or ']'");
      scanner_.skipBlanks();
    }
    scanner_.advance();
    return integers;
  }

  Result<std::vector<double>> readNumbers() {
    std::vector<double> numbers;
    if (auto open = scanner_.expect("["); !open) return tl::make_unexpected(open.error());
    scanner_.skipBlanks();
    while (scanner_.peek() != ']') {
      Scanner begin = scanner_;
      auto value = scanner_.number("a value");
      if (!value) return tl::make_unexpected(value.error());
      // A double does not hold every integer above 2^53.
      std::string_view text = begin.rest().substr(0, scanner_.position() - begin.position());
      if (std::abs(*value) >= 0x1p53 && text.find_first_of(".eEn") == std::string_view::npos &&
          text != fmt::format("{:.0f}", *value)) {
        return begin.expected("a value that a double holds exactly", ErrorKind::Invalid);
      }
      numbers.push_back(*value);
      scanner_.skipBlanks();
      if (scanner_.peek() == ']') break;
      if (!scanner_.accept(",")) return scanner_.expected("',' or ']'");
      scanner_.skipBlanks();
    }
    scanner_.advance();
    return numbers;
  }

  // Flags stand behind ':' or behind a blank.
  bool atFlag() {
    Scanner ahead = scanner_;
    bool separated = ahead.peek() == ' ' || ahead.peek() == '\t';
    ahead.skipBlanks();
    if (ahead.accept(":")) {
      ahead.skipBlanks();
    } else if (!separated || Scanner(ahead).word().empty()) {
      return false;
    }
    scanner_ = ahead;
    return true;
  }

  Result<void> readFlag(InputSpec& spec, std::set<std::string>& given) {
    Scanner begin = scanner_;
    std::string flag(scanner_.word());
    std::string subject = flag;
#define FAULTLINE_PATTERN(name, word)  \
  if (flag == word) {                  \
    spec.pattern = ValuePattern::name; \
    subject = "values";                \
  }
#include "generators/case/patterns.def"
#undef FAULTLINE_PATTERN
    Result<void> done;
    if (subject == "values" && flag != "values") {
      // A pattern's word: nothing follows.
    } else if (flag == "grad") {
      spec.requires_grad = true;
    } else if (flag == "nonleaf") {
      spec.leaf = false;
    } else if (flag == "cpu" || flag == "cuda") {
      spec.device = flag == "cpu" ? c10::DeviceType::CPU : c10::DeviceType::CUDA;
      subject = "device";
    } else if (!scanner_.accept("=")) {
      scanner_ = begin;
      return scanner_.expected(kFlags);
    } else if (flag == "strides") {
      done = take(readIntegers("a stride"), spec.strides);
    } else if (flag == "offset") {
      done = take(scanner_.integer("an offset"), spec.offset);
    } else if (flag == "seed") {
      done = take(scanner_.unsignedInteger("a seed"), spec.seed);
    } else if (flag == "fill") {
      spec.pattern = ValuePattern::Fill;
      done = take(scanner_.number("a value"), spec.fill);
      subject = "values";
    } else if (flag == "values") {
      spec.pattern = ValuePattern::Literal;
      done = take(readNumbers(), spec.values);
    } else if (flag == "data") {
      spec.pattern = ValuePattern::Data;
      subject = "values";
      size_t length = std::min(scanner_.rest().find_first_not_of(kBase64), scanner_.rest().size());
      std::optional<std::string> bytes = base64Decode(scanner_.rest().substr(0, length));
      if (!bytes) return scanner_.expected("bytes in base64");
      spec.data = std::move(*bytes);
      scanner_.advance(length);
    } else {
      scanner_ = begin;
      return scanner_.expected(kFlags);
    }
    if (!done) return done;
    if (!given.insert(subject).second) {
      return begin.expected(
          fmt::format("{} to be given once", subject == "values" ? "the pattern of values" : subject),
          ErrorKind::Invalid);
    }
    return {};
  }

  template <class T, class To>
  static Result<void> take(Result<T> value, To& to) {
    if (!value) return tl::make_unexpected(value.error());
    to = std::move(*value);
    return {};
  }

  static constexpr const char* kFlags =
      "grad, nonleaf, strides=[..], offset=N, cpu, cuda, seed=N, fill=X, values=[..], data=.., or a pattern "
      "(normal positive unit zeros ones ties edges)";

  Scanner& scanner_;
};

}  // namespace

Result<InputSpec> scanInputSpec(Scanner& scanner) { return SpecReader(scanner).read(0); }

Result<InputSpec> readInputSpec(std::string_view text) {
  Scanner scanner(text);
  scanner.skipBlanks();
  auto spec = scanInputSpec(scanner);
  if (!spec) return spec;
  scanner.skipBlanks();
  if (!scanner.atEnd()) return scanner.expected("the end of the input's description");
  return spec;
}

}  // namespace faultline
