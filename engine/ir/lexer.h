// Tokens of IR text.
#pragma once
#include <string>
#include <string_view>

#include "faultline/error.h"

namespace faultline {

// Thrown inside the reader only, and turned into the Result at its door: a recursive descent that hands a
// Result through every function would be mostly plumbing.
struct ReadFailure {
  Error error;
};

enum class TokenKind {
  End,
  Word,         // relu, prim, __torch__
  Number,       // 12, 1.5, .5, 1e-3, without sign
  Imaginary,    // 1.5j
  String,       // "a\n", decoded
  ValueName,    // %x.1 or %"odd name", without the %
  Punctuation,  // one character, or "->" or "::"
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;  // as written; of a name or string without what marks it
  std::string decoded;    // of String and quoted ValueName
  size_t begin = 0;       // offset into the text
  size_t end = 0;

  bool is(char punctuation) const {
    return kind == TokenKind::Punctuation && text.size() == 1 && text[0] == punctuation;
  }
  bool is(std::string_view word) const {
    return (kind == TokenKind::Word || kind == TokenKind::Punctuation) && text == word;
  }
};

// Line ends are blanks, `#` begins a comment. Any bytes are accepted: what is no token fails with its place.
class Lexer {
 public:
  Lexer(std::string_view text, size_t first_line) : text_(text), first_line_(first_line) { advance(); }

  const Token& peek() const { return token_; }
  Token take();                   // the token, and goes on
  bool accept(char punctuation);  // takes it if it is there
  bool accept(std::string_view word);
  void expect(char punctuation, std::string_view where);  // fails with "expected 'c' where, found …"
  void expect(std::string_view word, std::string_view where);
  void skipLine();         // to the end of the line of the token at hand, comment included
  char following() const;  // the byte right behind the token at hand; 0 at the end

  [[noreturn]] void fail(std::string message) const { failAt(token_.begin, std::move(message)); }
  [[noreturn]] void failExpected(std::string_view what) const;  // "expected WHAT, found …"
  [[noreturn]] void failAt(size_t offset, std::string message, ErrorKind kind = ErrorKind::Syntax) const;

  // Going back, for the few places where one token does not decide.
  Token mark() const { return token_; }
  void rewind(const Token& token) { token_ = token; }

 private:
  void advance();
  void skipBlanks(size_t& at) const;
  size_t readString(size_t at, Token& token) const;
  size_t readNumber(size_t at, Token& token) const;
  std::string describe() const;

  std::string_view text_;
  size_t first_line_;
  Token token_;
};

// Counts one level of nesting for as long as it lives, and fails when there are too many: text must not be
// able to exhaust the stack of its reader, nor that of libtorch, which walks blocks and types by recursion.
class NestingLevel {
 public:
  NestingLevel(const Lexer& lexer, size_t& depth, size_t limit, std::string_view what);
  ~NestingLevel() { --depth_; }
  NestingLevel(const NestingLevel&) = delete;
  NestingLevel& operator=(const NestingLevel&) = delete;

 private:
  size_t& depth_;
};

}  // namespace faultline
