// What a caller's input can cause is a value of these types; a broken invariant of ours aborts
// (engine/support/check.h).
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <tl/expected.hpp>

namespace faultline {

enum class ErrorKind {
  Syntax,       // the text is not in the grammar
  Invalid,      // well formed, but not a valid graph, case or plan
  Unsupported,  // valid, but not something this build or this torch can do
  Io,           // the file system said no
};

struct SourceLocation {
  size_t line = 0;    // from 1
  size_t column = 0;  // from 1, in bytes
};

struct Error {
  ErrorKind kind = ErrorKind::Invalid;
  std::string message;  // what is wrong and what was expected, one line, no trailing period
  std::string file;     // empty: not from a file
  std::optional<SourceLocation> where;

  // "FILE:LINE:COLUMN: message", without the parts that are not known.
  std::string str() const;
};

template <class T>
using Result = tl::expected<T, Error>;

// Shorthand for `return fail(ErrorKind::Syntax, "…")` in functions that return a Result.
tl::unexpected<Error> fail(ErrorKind kind, std::string message,
                           std::optional<SourceLocation> where = std::nullopt);

}  // namespace faultline
