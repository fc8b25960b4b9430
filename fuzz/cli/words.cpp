#include "fuzz/cli/words.h"

#include <fmt/format.h>

#include "engine/ir/nearest.h"

namespace faultline::cli {

Error unknownWord(std::string_view what, std::string_view word, const std::vector<std::string>& known,
                  std::string_view where_listed) {
  Error error;
  error.kind = ErrorKind::Invalid;
  const std::string near = didYouMean(word, known);
  error.message = fmt::format("unknown {} '{}'{}", what, word, near);
  if (near.empty() && !where_listed.empty())
    error.message += fmt::format("; `{}` shows them all", where_listed);
  return error;
}

}  // namespace faultline::cli
