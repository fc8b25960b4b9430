#include "engine/ir/text.h"

#include <fmt/format.h>

#include <cmath>

namespace faultline {
namespace {

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) {
    text += '.';
  }
  return text;
}

}  // namespace

std::string quotedText(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    switch (c) {
      case '"':
        text += "\\\"";
        break;
      case '\\':
        text += "\\\\";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\t':
        text += "\\t";
        break;
      case '\r':
        text += "\\r";
        break;
      default:
        if (c >= ' ' && c <= '~') {
          text += c;
        } else {
          text += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
        }
    }
  }
  return text + '"';
}

std::string floatText(double value) { return shortest(value); }
std::string floatText(float value) { return shortest(value); }

}  // namespace faultline
