#include "engine/ir/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ir/describe.h"
#include "engine/ir/text.h"

namespace faultline {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isWordPart(char c) { return isWordStart(c) || isDigit(c); }
bool isNamePart(char c) { return isWordPart(c) || c == '.'; }
bool isOctal(char c) { return c >= '0' && c <= '7'; }

int hexValue(char c) {
  if (isDigit(c)) {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// What stands for what behind a backslash; 0: no such escape.
char simpleEscape(char c) {
  static constexpr std::string_view kWritten = "\\\"'abfnrtv";
  static constexpr std::string_view kMeant = "\\\"'\a\b\f\n\r\t\v";
  const size_t at = kWritten.find(c);
  return at == std::string_view::npos ? '\0' : kMeant[at];
}

}  // namespace

Token Lexer::take() {
  Token taken = std::move(token_);
  token_ = Token();
  token_.end = taken.end;
  advance();
  return taken;
}

bool Lexer::accept(char punctuation) {
  if (!token_.is(punctuation)) {
    return false;
  }
  take();
  return true;
}

bool Lexer::accept(std::string_view word) {
  if (!token_.is(word)) {
    return false;
  }
  take();
  return true;
}

void Lexer::expect(char punctuation, std::string_view where) {
  if (!accept(punctuation)) {
    failExpected(fmt::format("'{}' {}", punctuation, where));
  }
}

void Lexer::expect(std::string_view word, std::string_view where) {
  if (!accept(word)) {
    failExpected(fmt::format("'{}' {}", word, where));
  }
}

void Lexer::skipLine() {
  token_.end = std::min(text_.find('\n', token_.begin), text_.size());
  advance();
}

char Lexer::following() const { return token_.end < text_.size() ? text_[token_.end] : '\0'; }

void Lexer::failExpected(std::string_view what) const {
  fail(fmt::format("expected {}, found {}", what, describe()));
}

void Lexer::failAt(size_t offset, std::string message, ErrorKind kind) const {
  const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
  const size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const size_t line = first_line_ + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  throw ReadFailure{
      Error{kind, std::move(message), {}, SourceLocation{line, before.size() - line_begin + 1}}};
}

std::string Lexer::describe() const {
  switch (token_.kind) {
    case TokenKind::End:
      return "the end of the text";
    case TokenKind::String:
      return "a string";
    case TokenKind::ValueName:
      return "'%" + shortened(std::string(token_.text)) + "'";
    default:
      return "'" + shortened(std::string(token_.text)) + "'";
  }
}

void Lexer::skipBlanks(size_t& at) const {
  while (at < text_.size()) {
    const char c = text_[at];
    if (c == '#') {
      at = std::min(text_.find('\n', at), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  size_t at = token_.end;
  skipBlanks(at);
  Token token;
  token.begin = at;
  if (at == text_.size()) {
    token.end = at;
    token_ = std::move(token);
    return;
  }
  const char c = text_[at];
  const char next = at + 1 < text_.size() ? text_[at + 1] : '\0';
  if (isWordStart(c)) {
    token.kind = TokenKind::Word;
    while (at < text_.size() && isWordPart(text_[at])) {
      ++at;
    }
  } else if (isDigit(c) || (c == '.' && isDigit(next))) {
    at = readNumber(at, token);
  } else if (c == '"') {
    at = readString(at, token);
  } else if (c == '%' && next == '"') {
    at = readString(at + 1, token);
    token.kind = TokenKind::ValueName;
  } else if (c == '%' && isNamePart(next)) {
    token.kind = TokenKind::ValueName;
    ++at;
    while (at < text_.size() && isNamePart(text_[at])) {
      ++at;
    }
    token.decoded = std::string(text_.substr(token.begin + 1, at - token.begin - 1));
  } else if (c > ' ' && c <= '~') {
    token.kind = TokenKind::Punctuation;
    const bool pair = (c == '-' && next == '>') || (c == ':' && next == ':');
    at += pair ? 2 : 1;
  } else {
    failAt(at, fmt::format("byte 0x{:02x} cannot stand in IR text outside of a string",
                           static_cast<unsigned char>(c)));
  }
  token.end = at;
  const bool marked = token.kind == TokenKind::ValueName || token.kind == TokenKind::String;
  token.text = marked ? text_.substr(token.begin + 1, at - token.begin - 1)
                      : text_.substr(token.begin, at - token.begin);
  token_ = std::move(token);
}

size_t Lexer::readNumber(size_t at, Token& token) const {
  token.kind = TokenKind::Number;
  const auto digits = [&] {
    while (at < text_.size() && isDigit(text_[at])) {
      ++at;
    }
  };
  digits();
  if (at < text_.size() && text_[at] == '.') {
    ++at;
    digits();
  }
  if (at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
    size_t exponent = at + 1;
    if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) {
      ++exponent;
    }
    if (exponent < text_.size() && isDigit(text_[exponent])) {
      at = exponent;
      digits();
    }
  }
  if (at < text_.size() && text_[at] == 'j' && (at + 1 == text_.size() || !isWordPart(text_[at + 1]))) {
    token.kind = TokenKind::Imaginary;
    ++at;
  }
  return at;
}

// `at` is at the opening quote; gives the offset behind the closing one.
size_t Lexer::readString(size_t at, Token& token) const {
  token.kind = TokenKind::String;
  const size_t open = at;
  for (++at; at < text_.size() && text_[at] != '"'; ++at) {
    const char c = text_[at];
    if (c == '\n') {
      break;
    }
    if (c != '\\') {
      token.decoded += c;
      continue;
    }
    ++at;
    const char escape = at < text_.size() ? text_[at] : '\0';
    if (isOctal(escape)) {
      unsigned value = 0;
      size_t digits = 0;
      while (digits < 3 && at < text_.size() && isOctal(text_[at])) {
        value = value * 8 + static_cast<unsigned>(text_[at] - '0');
        ++at;
        ++digits;
      }
      --at;
      if (value > 255) {
        failAt(at, "an octal escape above \\377 is no byte");
      }
      token.decoded += static_cast<char>(value);
    } else if (escape == 'x') {
      const int high = at + 1 < text_.size() ? hexValue(text_[at + 1]) : -1;
      const int low = at + 2 < text_.size() ? hexValue(text_[at + 2]) : -1;
      if (high < 0 || low < 0) {
        failAt(at, "expected two hexadecimal digits behind \\x");
      }
      token.decoded += static_cast<char>(high * 16 + low);
      at += 2;
    } else if (const char meant = simpleEscape(escape); meant != '\0' && escape != '\0') {
      token.decoded += meant;
    } else {
      failAt(std::min(at, text_.size()),
             "unknown escape in a string: expected one of \\\\ \\\" \\' \\a \\b \\f \\n \\r "
             "\\t \\v, \\ooo or \\xhh");
    }
  }
  if (at >= text_.size() || text_[at] != '"') {
    failAt(open, "expected '\"' at the end of this string before the end of its line");
  }
  return at + 1;
}

NestingLevel::NestingLevel(const Lexer& lexer, size_t& depth, size_t limit, std::string_view what)
    : depth_(depth) {
  if (depth >= limit) {
    lexer.fail(fmt::format("{} are nested deeper than {} levels", what, limit));
  }
  ++depth_;
}

}  // namespace faultline
