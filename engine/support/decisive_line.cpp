#include "engine/support/decisive_line.h"

#include <algorithm>
#include <cctype>

namespace faultline {
namespace {

constexpr std::string_view kRuntimeError = "RuntimeError:";

std::string_view trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
}

std::string_view lineAt(std::string_view text, size_t at) {
  return text.substr(std::min(at, text.size()), std::min(text.find('\n', at), text.size()) - at);
}

// "builtins.ValueError: …", and not "else:", which the excerpt of a source may begin with.
bool beginsWithClass(std::string_view line) {
  const size_t colon = line.find_first_of(": \t");
  if (colon == std::string_view::npos || line[colon] != ':') return false;
  const std::string_view name = line.substr(0, colon);
  const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
  const bool is_class =
      name.find('.') != std::string_view::npos || name.ends_with("Error") || name.ends_with("Exception");
  return is_name && is_class && !name.ends_with("RuntimeError");
}

}  // namespace

std::string_view decisiveLine(std::string_view text) {
  std::string_view first, last;
  bool in_traceback = false;  // whose class is still to come
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = lineAt(text, at);
    at += line.size() + 1;
    if (trimmed(line).empty()) continue;
    if (first.empty()) first = line;
    if (in_traceback && beginsWithClass(line)) {
      in_traceback = false;
      last = line;
    } else if (const size_t found = line.rfind(kRuntimeError); found != std::string_view::npos) {
      in_traceback = false;
      last = line.substr(found + kRuntimeError.size());
      // A message that begins on its own line.
      if (trimmed(last).empty() && at < text.size()) last = lineAt(text, at);
    }
    if (line.find("in the TorchScript interpreter") != std::string_view::npos ||
        line.rfind("Traceback of TorchScript", 0) == 0) {
      in_traceback = true;
    }
  }
  return trimmed(trimmed(last).empty() ? first : last);
}

}  // namespace faultline
