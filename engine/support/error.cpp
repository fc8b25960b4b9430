#include "faultline/error.h"

#include <fmt/format.h>

namespace faultline {

std::string Error::str() const {
  std::string prefix = file;
  if (where) {
    prefix += fmt::format("{}{}:{}", prefix.empty() ? "" : ":", where->line, where->column);
  }
  return prefix.empty() ? message : prefix + ": " + message;
}

tl::unexpected<Error> fail(ErrorKind kind, std::string message, std::optional<SourceLocation> where) {
  return tl::make_unexpected(Error{kind, std::move(message), {}, where});
}

}  // namespace faultline
