#include "engine/ir/nearest.h"

#include <algorithm>
#include <numeric>

namespace faultline {
namespace {

constexpr size_t kCompared = 64;

// Insertions, deletions, replacements and swaps of neighbours.
size_t editDistance(std::string_view a, std::string_view b) {
  a = a.substr(0, kCompared);
  b = b.substr(0, kCompared);
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

// The first of the nearest candidates, or nothing where none is close enough to be a slip of the fingers.
std::string slipOf(std::string_view wanted, const std::vector<std::string>& candidates) {
  const size_t slips = std::max<size_t>(1, std::min(wanted.size(), kCompared) / 3);
  const std::string* nearest = nullptr;
  size_t least = slips + 1;
  for (const std::string& candidate : candidates) {
    // Among thousands of operators only those of about the same length can be near.
    if (candidate.size() + slips < wanted.size() || candidate.size() > wanted.size() + slips) {
      continue;
    }
    if (const size_t distance = editDistance(wanted, candidate); distance < least) {
      nearest = &candidate;
      least = distance;
    }
  }
  return nearest == nullptr ? std::string() : *nearest;
}

}  // namespace

std::string didYouMean(std::string_view wanted, const std::vector<std::string>& candidates) {
  const std::string near = slipOf(wanted, candidates);
  return near.empty() ? "" : " (did you mean '" + near + "'?)";
}

std::string nearestOrAll(std::string_view wanted, const std::vector<std::string>& candidates) {
  constexpr size_t kListed = 12;
  if (candidates.empty()) {
    return "";
  }
  const std::string near = slipOf(wanted, candidates);
  if (!near.empty()) {
    return "; the nearest is '" + near + "'";
  }
  const bool all = candidates.size() <= kListed;
  const size_t before = all ? candidates.size() - 1 : kListed;
  std::string text = candidates.size() == 1 ? "; there is " : "; there are ";
  for (size_t i = 0; i < before; ++i) {
    text += (i == 0 ? "" : ", ") + candidates[i];
  }
  text += before == 0 ? "" : " and ";
  return text + (all ? candidates.back() : std::to_string(candidates.size() - before) + " more");
}

}  // namespace faultline
