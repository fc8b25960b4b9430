// What a summary leaves out of long lists, and how it says so.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/cli/console.h"

namespace faultline::cli {

std::string words(const std::vector<std::string>& list);   // "a, b, c"; "none"
std::string folded(const std::vector<std::string>& list);  // of a long one how it begins and ends
std::string named(const std::vector<std::string>& list, bool summary);  // folded in a summary

// Which of so many paragraphs are printed: all, or in a summary of very many the first and the last ones.
class Shown {
 public:
  Shown(size_t count, bool summary) : count_(count), folds_(summary && count > kAll) {}
  bool operator()(size_t i) const { return !folds_ || i < kFirst || i + kLast >= count_; }
  // Behind the first ones: how many are left out here. Elsewhere, and where none are: 0.
  size_t leftOutAt(size_t i) const { return folds_ && i == kFirst ? count_ - kFirst - kLast : 0; }

 private:
  static constexpr size_t kAll = 24, kFirst = 6, kLast = 3;
  size_t count_;
  bool folds_;
};

// "… 1488 more pieces, 3 of them eager (--json FILE has all)"
void printLeftOut(const Console& console, size_t count, std::string_view noun,
                  const std::string& of_them = {});

}  // namespace faultline::cli
