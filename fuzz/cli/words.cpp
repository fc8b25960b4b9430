#include "fuzz/cli/words.h"

#include <algorithm>

#include <fmt/format.h>

namespace faultline::cli {
namespace {

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearestWord(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  // Half of the word may be wrong: beyond that a suggestion is noise.
  size_t best_distance = std::max<size_t>(2, (word.size() + 1) / 2) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = editDistance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

Error unknownWord(std::string_view what, std::string_view word, const std::vector<std::string>& known,
                  std::string_view where_listed) {
  Error error;
  error.kind = ErrorKind::Invalid;
  error.message = fmt::format("unknown {} '{}'", what, word);
  const std::string nearest = nearestWord(word, known);
  if (!nearest.empty()) {
    error.message += fmt::format(": did you mean '{}'?", nearest);
  } else if (!where_listed.empty()) {
    error.message += fmt::format("; `{}` shows them all", where_listed);
  }
  return error;
}

}  // namespace faultline::cli
