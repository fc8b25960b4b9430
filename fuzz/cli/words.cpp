#include "fuzz/cli/words.h"

#include <algorithm>
#include <cctype>

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

std::string shellQuoted(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:=,@%+").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

}  // namespace faultline::cli
