// Reads the small line-based texts of this layer (tapes, input specs, case headers) and knows the line and
// column of everything it reads. Never reads behind its text, whatever the bytes. One scanner belongs to one
// thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "faultline/error.h"

namespace faultline {

class Scanner {
 public:
  // `start` is where `text` begins in its file.
  explicit Scanner(std::string_view text, SourceLocation start = {1, 1}) : text_(text), start_(start) {}

  bool atEnd() const { return position_ == text_.size(); }
  bool atLineEnd() const { return atEnd() || text_[position_] == '\n'; }
  char peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  std::string_view rest() const { return text_.substr(position_); }
  size_t position() const { return position_; }
  SourceLocation where() const { return where(position_); }
  SourceLocation where(size_t position) const;

  void advance(size_t count = 1);
  void skipBlanks();            // spaces and tabs
  void skipSpaceAndComments();  // blanks, line ends and `# …`
  std::string_view
  takeLine();  // to the line's end, which is passed but not returned; a '\r' before it is dropped

  bool accept(std::string_view token);  // no blanks skipped
  Result<void> expect(std::string_view token);
  std::string_view word();  // [A-Za-z_][A-Za-z0-9_]*, may be empty

  Result<uint64_t> unsignedInteger(std::string_view what);
  Result<int64_t> integer(std::string_view what);
  Result<double> number(std::string_view what);  // with inf, nan and a sign
  Result<std::string> quoted();                  // "…" with \" \\ \n \t \r \xNN

  // The rest of the line as it is, blanks around it left out; or a quoted string, a comment behind it
  // allowed.
  Result<std::string> freeText();

  // "expected WHAT, got …" at the current place.
  tl::unexpected<Error> expected(std::string_view what, ErrorKind kind = ErrorKind::Syntax) const;

 private:
  std::string_view text_;
  SourceLocation start_;
  size_t position_ = 0;
};

std::string quote(std::string_view text);  // what Scanner::quoted reads back
std::string writeFreeText(
    std::string_view text);             // what Scanner::freeText reads back: quoted where it has to be
std::string writeDouble(double value);  // the shortest text that Scanner::number reads back to the same value
// For messages: at most `limit` bytes, unprintable ones as \xNN.
std::string printable(std::string_view text, size_t limit = 32);

}  // namespace faultline
