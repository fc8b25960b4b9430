#include "fuzz/cli/console.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

#include "generators/text/utf8.h"

namespace faultline::cli {
namespace {

bool startsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Byte position behind the first `count` code points.
size_t behind(std::string_view text, size_t count) {
  size_t at = 0;
  while (at < text.size() && count > 0) {
    do ++at;
    while (at < text.size() && !startsCodePoint(text[at]));
    --count;
  }
  return at;
}

// Line ends stay.
std::string withoutControls(std::string_view text) {
  std::string clean;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8Sequence(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0 || (byte < 0x20 && byte != '\n') || byte == 0x7F) {
      clean += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      clean += text.substr(at, length);
      at += length;
    }
  }
  return clean;
}

// What stands in quotes is to be typed or found as it is: 'x=float32[4,8]', `faultline list lanes`. A quote
// opens where a word begins (elsewhere it is an apostrophe) and closes where one ends.
std::string quotesUnbroken(std::string_view text) {
  constexpr size_t kLongest = 200;  // whoever quotes more than that quotes no name
  constexpr std::string_view kBefore = " (=\n", kBehind = " ).,;:?\n";
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const char quote = text[at];
    result += quote;
    if ((quote != '\'' && quote != '`') || (at > 0 && kBefore.find(text[at - 1]) == std::string_view::npos)) {
      continue;
    }
    size_t end = at;
    do {
      end = text.find(quote, end + 1);
    } while (end != std::string_view::npos && end + 1 < text.size() &&
             kBehind.find(text[end + 1]) == std::string_view::npos);
    if (end == std::string_view::npos || end - at > kLongest) continue;
    for (const char c : text.substr(at + 1, end - at)) {
      c == ' ' ? result += kUnbroken : result += c;
    }
    at = end;
  }
  return result;
}

std::string padded(const std::string& text, size_t width, bool right) {
  const size_t have = displayWidth(text);
  const std::string space(have < width ? width - have : 0, ' ');
  return right ? space + text : text + space;
}

}  // namespace

void Console::print(std::string_view text) const { std::fwrite(text.data(), 1, text.size(), stream_); }

void Console::line(std::string_view text) const {
  std::string all = margin_;
  for (const char c : text) {
    all += c;
    if (c == '\n') all += margin_;
  }
  all.erase(all.find_last_not_of(' ') + 1);
  print(all + "\n");
}

void Console::paragraph(std::string_view text, size_t indent) const {
  line(std::string(indent, ' ') + wrap(text, kWidth - indent - margin_.size(), indent));
}

void complain(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string asComplaint(std::string_view sentence) {
  constexpr size_t kIndent = 2;
  return wrap(quotesUnbroken(withoutControls(sentence)), kWidth - kIndent, kIndent) + "\n";
}

void complainOf(std::string_view sentence) { complain(asComplaint(sentence)); }

ProgressLine::ProgressLine() {
  const char* ci = std::getenv("CI");
  const bool in_ci = ci != nullptr && *ci != '\0' && std::string_view(ci) != "false";
  shown_ = !in_ci && isatty(STDERR_FILENO) != 0;
}

void ProgressLine::update(std::string_view text) {
  if (!shown_) return;
  complain(fmt::format("\r\x1b[K{}", shorten(text, kWidth - 1)));
  dirty_ = true;
}

void ProgressLine::clear() {
  if (!dirty_) return;
  complain("\r\x1b[K");
  dirty_ = false;
}

size_t displayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), startsCodePoint));
}

std::string wrap(std::string_view text, size_t width, size_t indent) {
  std::string result;
  size_t column = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t needed = displayWidth(word);
    if (column > 0 && column + 1 + needed > width) {
      result += '\n';
      result.append(indent, ' ');
      column = 0;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += word;
    const size_t line_end = word.rfind('\n');
    column = line_end == std::string_view::npos ? column + needed : displayWidth(word.substr(line_end + 1));
  }
  for (size_t at = 0; (at = result.find(kUnbroken, at)) != std::string::npos;) {
    result.replace(at, kUnbroken.size(), " ");
  }
  return result;
}

std::string shorten(std::string_view text, size_t width) {
  const size_t have = displayWidth(text);
  if (have <= width) return std::string(text);
  if (width < 3) return std::string(text.substr(0, behind(text, width)));
  const size_t head = (width - 1 + 1) / 2;
  const size_t tail = width - 1 - head;
  return fmt::format("{}…{}", text.substr(0, behind(text, head)), text.substr(behind(text, have - tail)));
}

void Table::add(std::vector<std::string> row) {
  row.resize(rows_.front().size());
  rows_.push_back(std::move(row));
}

std::string Table::str(size_t indent) const {
  constexpr size_t kGap = 2;
  constexpr size_t kNarrowest = 4;
  constexpr size_t kProse = 30;  // a wrapped column narrower than this reads badly
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], displayWidth(row[i]));
  }
  const size_t last = widths.size() - 1;
  const size_t fixed = indent + kGap * last;
  const auto total = [&] { return std::accumulate(widths.begin(), widths.end(), fixed); };
  if (wrap_last_ && total() > kWidth) {
    const size_t others = total() - widths[last];
    widths[last] = std::min(widths[last], others + kProse < kWidth ? kWidth - others : kProse);
  }
  while (total() > kWidth) {
    auto widest = std::max_element(widths.begin(), widths.end() - (wrap_last_ ? 1 : 0));
    if (*widest <= kNarrowest) break;
    --*widest;
  }
  const size_t before_last = total() - widths[last];
  std::string result;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      const bool right = std::find(right_.begin(), right_.end(), i) != right_.end();
      if (i > 0) line.append(kGap, ' ');
      line += wrap_last_ && i == last ? wrap(row[i], widths[i], before_last)
                                      : padded(shorten(row[i], widths[i]), widths[i], right);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) result += line + '\n';
  }
  return result;
}

std::string percentage(uint64_t count, uint64_t of) {
  if (count == 0 || of == 0) return "0";
  const double exact = 100.0 * static_cast<double>(count) / static_cast<double>(of);
  if (count < of && exact >= 99.5) return ">99";
  return exact < 0.95 ? fmt::format("{:.2g}", exact) : fmt::format("{:.0f}", exact);
}

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace faultline::cli
