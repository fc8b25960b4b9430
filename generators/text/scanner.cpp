#include "generators/text/scanner.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace faultline {
namespace {

bool isWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

int hexDigit(char c) {
  if (isDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string escaped(std::string_view text, bool keep_high_bytes) {
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !keep_high_bytes)) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

SourceLocation Scanner::where(size_t position) const {
  SourceLocation location = start_;
  for (char c : text_.substr(0, position)) {
    if (c == '\n') {
      ++location.line;
      location.column = 1;
    } else {
      ++location.column;
    }
  }
  return location;
}

void Scanner::advance(size_t count) { position_ = std::min(position_ + count, text_.size()); }

void Scanner::skipBlanks() {
  while (peek() == ' ' || peek() == '\t') ++position_;
}

void Scanner::skipSpaceAndComments() {
  while (!atEnd()) {
    char c = peek();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++position_;
    } else if (c == '#') {
      while (!atLineEnd()) ++position_;
    } else {
      return;
    }
  }
}

std::string_view Scanner::takeLine() {
  size_t begin = position_;
  position_ = std::min(text_.find('\n', position_), text_.size());
  std::string_view line = text_.substr(begin, position_ - begin);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  advance();
  return line;
}

bool Scanner::accept(std::string_view token) {
  if (!rest().starts_with(token)) return false;
  position_ += token.size();
  return true;
}

Result<void> Scanner::expect(std::string_view token) {
  if (!accept(token)) return expected(fmt::format("'{}'", token));
  return {};
}

std::string_view Scanner::word() {
  size_t begin = position_;
  if (isWordStart(peek())) {
    while (isWordStart(peek()) || isDigit(peek())) ++position_;
  }
  return text_.substr(begin, position_ - begin);
}

Result<uint64_t> Scanner::unsignedInteger(std::string_view what) {
  uint64_t value = 0;
  const char* begin = text_.data() + position_;
  auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (code == std::errc::result_out_of_range)
    return expected(fmt::format("{} below 2^64", what), ErrorKind::Invalid);
  if (code != std::errc()) return expected(what);
  position_ += static_cast<size_t>(end - begin);
  return value;
}

Result<int64_t> Scanner::integer(std::string_view what) {
  int64_t value = 0;
  const char* begin = text_.data() + position_;
  auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (code == std::errc::result_out_of_range)
    return expected(fmt::format("{} of 64 bits", what), ErrorKind::Invalid);
  if (code != std::errc()) return expected(what);
  position_ += static_cast<size_t>(end - begin);
  return value;
}

Result<double> Scanner::number(std::string_view what) {
  size_t sign = peek() == '-' || peek() == '+' ? 1 : 0;
  bool negative = peek() == '-';
  // from_chars takes "infinity" and "nan(…)" as well: only the two spellings that are written are let
  // through.
  if (isWordStart(peek(sign))) {
    std::string_view tail = text_.substr(position_ + sign);
    double special = 0;
    if (tail.starts_with("inf")) {
      special = std::numeric_limits<double>::infinity();
    } else if (tail.starts_with("nan")) {
      special = std::numeric_limits<double>::quiet_NaN();
    } else {
      return expected(what);
    }
    if (isWordStart(peek(sign + 3)) || isDigit(peek(sign + 3))) return expected(what);
    position_ += sign + 3;
    return negative ? -special : special;
  }
  double value = 0;
  const char* begin = text_.data() + position_ + (peek() == '+' ? 1 : 0);
  auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (code == std::errc::result_out_of_range) {
    return expected(fmt::format("{} in the range of a double", what), ErrorKind::Invalid);
  }
  if (code != std::errc()) return expected(what);
  position_ = static_cast<size_t>(end - text_.data());
  return value;
}

Result<std::string> Scanner::quoted() {
  if (!accept("\"")) return expected("'\"'");
  std::string out;
  while (!accept("\"")) {
    if (atLineEnd()) return expected("'\"' that ends the string");
    char c = peek();
    advance();
    if (c != '\\') {
      out += c;
      continue;
    }
    char escape = peek();
    if (escape == 'x') {
      int high = hexDigit(peek(1));
      int low = hexDigit(peek(2));
      if (high < 0 || low < 0) return expected("two hexadecimal digits behind \\x");
      out += static_cast<char>(high * 16 + low);
      advance(3);
      continue;
    }
    if (escape == 'n') {
      out += '\n';
    } else if (escape == 't') {
      out += '\t';
    } else if (escape == 'r') {
      out += '\r';
    } else if (escape == '"' || escape == '\\') {
      out += escape;
    } else {
      return expected("one of \\\" \\\\ \\n \\t \\r \\xNN");
    }
    advance();
  }
  return out;
}

Result<std::string> Scanner::freeText() {
  skipBlanks();
  if (peek() == '"') {
    auto text = quoted();
    if (!text) return text;
    skipBlanks();
    if (!atLineEnd() && peek() != '#' && peek() != '\r') return expected("the end of the line");
    while (!atLineEnd()) ++position_;
    return text;
  }
  std::string_view line = rest().substr(0, rest().find('\n'));
  advance(line.size());
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
    line.remove_suffix(1);
  return std::string(line);
}

tl::unexpected<Error> Scanner::expected(std::string_view what, ErrorKind kind) const {
  std::string got = "the end";
  if (!atEnd()) {
    std::string_view line = rest().substr(0, rest().find('\n'));
    got = line.empty() ? "the end of the line" : fmt::format("'{}'", printable(line, 24));
  }
  return fail(kind, fmt::format("expected {}, got {}", what, got), where());
}

std::string quote(std::string_view text) { return '"' + escaped(text, /*keep_high_bytes=*/true) + '"'; }

std::string writeFreeText(std::string_view text) {
  bool plain = text.empty() || (text.front() != '"' && text.front() != ' ' && text.back() != ' ');
  for (char c : text) plain = plain && static_cast<unsigned char>(c) >= 0x20;
  return plain ? std::string(text) : quote(text);
}

std::string writeDouble(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  return fmt::format("{}", value);
}

std::string printable(std::string_view text, size_t limit) {
  std::string out = escaped(text.substr(0, limit), /*keep_high_bytes=*/false);
  return text.size() > limit ? out + "…" : out;
}

}  // namespace faultline
