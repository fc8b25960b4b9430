#include "fuzz/cli/folding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace faultline::cli {

std::string words(const std::vector<std::string>& list) {
  return list.empty() ? "none" : fmt::format("{}", fmt::join(list, ", "));
}

std::string folded(const std::vector<std::string>& list) {
  constexpr size_t kShort = 6;
  if (list.size() <= kShort) return words(list);
  return fmt::format("{}, {}, … {} more …, {}", list[0], list[1], list.size() - 3, list.back());
}

std::string named(const std::vector<std::string>& list, bool summary) {
  return summary ? folded(list) : words(list);
}

void printLeftOut(const Console& console, size_t count, std::string_view noun, const std::string& of_them) {
  console.paragraph(fmt::format("… {} more {}{} (--json FILE has all)", count, noun, of_them), 2);
}

}  // namespace faultline::cli
