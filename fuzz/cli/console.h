// Text for people: 80 columns, plain, no colours.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace faultline::cli {

inline constexpr size_t kWidth = 80;

// Where human text goes: stdout, or stderr when stdout is taken by `--json -`.
class Console {
 public:
  // `margin` stands before each line that is not printed as it is.
  explicit Console(std::string_view json_path = {}, std::string_view margin = {})
      : stream_(json_path == "-" ? stderr : stdout), margin_(margin) {}
  void print(std::string_view text) const;  // as it is
  void line(std::string_view text = {}) const;
  void paragraph(std::string_view text, size_t indent = 0) const;  // wrapped

 private:
  std::FILE* stream_;
  std::string margin_;
};

// To stderr. A stream that is closed or full is not worth dying for.
void complain(std::string_view text);
// What went wrong, in a sentence: wrapped, but not inside quotes; bytes that no terminal should get are
// written as \xNN.
void complainOf(std::string_view sentence);
std::string asComplaint(std::string_view sentence);  // the same as text, for those who may not make it then

// One line on stderr that is overwritten; nothing at all where stderr is no terminal or CI is set.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  bool shown() const { return shown_; }
  void update(std::string_view text);
  void clear();  // before other text is printed

 private:
  bool shown_;
  bool dirty_ = false;
};

inline constexpr std::string_view kUnbroken = "\u00a0";  // a space at which `wrap` breaks no line

size_t displayWidth(std::string_view text);  // code points: enough for what we print
// Breaks at spaces so that no line is wider than `width`, a longer word excepted. Later lines start with
// `indent` spaces.
std::string wrap(std::string_view text, size_t width, size_t indent = 0);
// Shortens to `width` code points, with "…" in the middle: both ends of names and paths matter.
std::string shorten(std::string_view text, size_t width);

// Columns padded to their widest cell; the widest ones are shortened until a row fits into kWidth.
class Table {
 public:
  explicit Table(std::vector<std::string> head)
      : rows_{std::move(head)} {}  // cells that are all empty: no head line
  void add(std::vector<std::string> row);
  void alignRight(size_t column) { right_.push_back(column); }
  void wrapLast() { wrap_last_ = true; }  // the last column is wrapped, not shortened
  bool empty() const { return rows_.size() == 1; }
  std::string str(size_t indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> right_;
  bool wrap_last_ = false;
};

std::string plural(uint64_t count, std::string_view noun);  // "1 case", "2 cases"
// "66" of a hundred, rounded; but what is rare does not look as if it had never been ("0.02"), nor what is
// usual as if there were no exception (">99").
std::string percentage(uint64_t count, uint64_t of);

}  // namespace faultline::cli
