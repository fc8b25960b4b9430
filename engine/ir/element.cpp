#include "engine/ir/element.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/ir/text.h"

namespace faultline {
namespace {

// X(name, C++ type, how it is written)
#define FAULTLINE_ELEMENTS(X)                   \
  X(Byte, uint8_t, Int)                         \
  X(Char, int8_t, Int)                          \
  X(Short, int16_t, Int)                        \
  X(Int, int32_t, Int)                          \
  X(Long, int64_t, Int)                         \
  X(UInt16, uint16_t, Int)                      \
  X(UInt32, uint32_t, Int)                      \
  X(UInt64, uint64_t, Int)                      \
  X(Double, double, Real)                       \
  X(Float, float, Real)                         \
  X(Half, at::Half, Real)                       \
  X(BFloat16, at::BFloat16, Real)               \
  X(Float8_e5m2, at::Float8_e5m2, Real)         \
  X(Float8_e4m3fn, at::Float8_e4m3fn, Real)     \
  X(Float8_e5m2fnuz, at::Float8_e5m2fnuz, Real) \
  X(Float8_e4m3fnuz, at::Float8_e4m3fnuz, Real)

template <class T>
T load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class T>
void store(T value, std::string& bytes) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.append(raw, sizeof(T));
}

template <class T>
std::string textOfInt(T value) {
  return std::to_string(value);
}

template <class T>
std::string textOfReal(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return floatText(value);
  } else {
    return floatText(static_cast<float>(value));
  }
}

std::string complexText(const std::string& real, const std::string& imaginary) {
  const bool plain = (real + imaginary).find_first_of("in") == std::string::npos;  // neither inf nor nan
  if (!plain) {
    return fmt::format("complex({}, {})", real, imaginary);
  }
  return real + (imaginary[0] == '-' ? "" : "+") + imaginary + "j";
}

// The text of a number with its sign. What from_chars takes, "inf" and "nan" included.
std::string takeNumber(Lexer& lexer) {
  std::string text;
  if (lexer.accept('-')) {
    text = "-";
  }
  const Token& token = lexer.peek();
  if (token.kind != TokenKind::Number && !token.is("inf") && !token.is("nan")) {
    lexer.failExpected("a number");
  }
  return text + std::string(lexer.take().text);
}

template <class T>
T parseReal(const Lexer& lexer, size_t begin, const std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) {
    return value;
  }
  if (error == std::errc::result_out_of_range) {
    lexer.failAt(begin, fmt::format("{} is beyond what the type can hold", text.substr(0, 60)));
  }
  lexer.failAt(begin, fmt::format("expected a number, found '{}'", text.substr(0, 60)));
}

template <class T>
void readInt(Lexer& lexer, std::string& bytes) {
  const size_t begin = lexer.peek().begin;
  const std::string text = takeNumber(lexer);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    lexer.failAt(begin,
                 fmt::format("expected an int from {} to {}, found '{}'", +std::numeric_limits<T>::min(),
                             +std::numeric_limits<T>::max(), text.substr(0, 60)));
  }
  store(value, bytes);
}

template <class T>
void readReal(Lexer& lexer, std::string& bytes) {
  const size_t begin = lexer.peek().begin;
  const std::string text = takeNumber(lexer);
  // By way of double a float could be rounded twice.
  using Parsed = std::conditional_t<std::is_same_v<T, double>, double, float>;
  store(static_cast<T>(parseReal<Parsed>(lexer, begin, text)), bytes);
}

void readBool(Lexer& lexer, std::string& bytes) {
  const bool yes = lexer.peek().is("True") || lexer.peek().text == "1";
  const bool no = lexer.peek().is("False") || lexer.peek().text == "0";
  if (!yes && !no) {
    lexer.failExpected("True or False");
  }
  lexer.take();
  store(yes, bytes);
}

template <class T>
T parsePart(Lexer& lexer) {
  std::string bytes;
  readReal<T>(lexer, bytes);
  return load<T>(bytes.data());
}

template <class T>
void readComplex(Lexer& lexer, std::string& bytes) {
  if (lexer.accept("complex")) {
    lexer.expect('(', "behind 'complex'");
    const T real = parsePart<T>(lexer);
    lexer.expect(',', "between the parts of a complex number");
    const T imaginary = parsePart<T>(lexer);
    lexer.expect(')', "behind the parts of a complex number");
    store(real, bytes);
    store(imaginary, bytes);
    return;
  }
  const T real = parsePart<T>(lexer);
  std::string text = lexer.accept('-') ? "-" : (lexer.accept('+'), "");
  if (lexer.peek().kind != TokenKind::Imaginary) {
    lexer.failExpected("the imaginary part of a complex number");
  }
  const Token token = lexer.take();
  text += token.text.substr(0, token.text.size() - 1);
  store(real, bytes);
  using Parsed = std::conditional_t<std::is_same_v<T, double>, double, float>;
  store(static_cast<T>(parseReal<Parsed>(lexer, token.begin, text)), bytes);
}

}  // namespace

bool hasElementText(c10::ScalarType dtype) {
  switch (dtype) {
#define FAULTLINE_CASE(name, type, form) case c10::ScalarType::name:
    FAULTLINE_ELEMENTS(FAULTLINE_CASE)
#undef FAULTLINE_CASE
    case c10::ScalarType::Bool:
    case c10::ScalarType::ComplexHalf:
    case c10::ScalarType::ComplexFloat:
    case c10::ScalarType::ComplexDouble:
      return true;
    default:
      return false;
  }
}

std::string elementText(c10::ScalarType dtype, const char* bytes) {
  switch (dtype) {
#define FAULTLINE_CASE(name, type, form) \
  case c10::ScalarType::name:            \
    return textOf##form(load<type>(bytes));
    FAULTLINE_ELEMENTS(FAULTLINE_CASE)
#undef FAULTLINE_CASE
    case c10::ScalarType::Bool:
      return *bytes != 0 ? "True" : "False";
    default: {
      const c10::ScalarType part = c10::toRealValueType(dtype);
      return complexText(elementText(part, bytes), elementText(part, bytes + c10::elementSize(part)));
    }
  }
}

void readElement(Lexer& lexer, c10::ScalarType dtype, std::string& bytes) {
  switch (dtype) {
#define FAULTLINE_CASE(name, type, form) \
  case c10::ScalarType::name:            \
    return read##form<type>(lexer, bytes);
    FAULTLINE_ELEMENTS(FAULTLINE_CASE)
#undef FAULTLINE_CASE
    case c10::ScalarType::Bool:
      return readBool(lexer, bytes);
    case c10::ScalarType::ComplexHalf:
      return readComplex<at::Half>(lexer, bytes);
    case c10::ScalarType::ComplexFloat:
      return readComplex<float>(lexer, bytes);
    case c10::ScalarType::ComplexDouble:
      return readComplex<double>(lexer, bytes);
    default:
      lexer.fail(fmt::format("elements of dtype {} are written as base64=\"…\" only", c10::toString(dtype)));
  }
}

double readDoubleFrom(Lexer& lexer) {
  const size_t begin = lexer.peek().begin;
  return doubleOf(lexer, begin, takeNumber(lexer));
}

double doubleOf(const Lexer& lexer, size_t begin, const std::string& text) {
  return parseReal<double>(lexer, begin, text);
}

namespace {

// The token behind a '-', if there is one.
Token unsignedPart(Lexer& lexer) {
  const Token first = lexer.mark();
  if (!first.is('-')) {
    return first;
  }
  lexer.take();
  Token second = lexer.mark();
  lexer.rewind(first);
  return second;
}

}  // namespace

bool atNumber(Lexer& lexer) {
  const Token token = unsignedPart(lexer);
  return token.kind == TokenKind::Number || token.is("inf") || token.is("nan");
}

bool atInt(Lexer& lexer) {
  const Token token = unsignedPart(lexer);
  return token.kind == TokenKind::Number && token.text.find_first_of(".eE") == std::string_view::npos;
}

}  // namespace faultline
