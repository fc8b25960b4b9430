#include "generators/text/base64.h"

#include <array>
#include <cstdint>

namespace faultline {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 255;

constexpr std::array<uint8_t, 256> makeValues() {
  std::array<uint8_t, 256> values{};
  for (uint8_t& value : values) value = kNone;
  for (size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<uint8_t>(i);
  return values;
}
constexpr std::array<uint8_t, 256> kValues = makeValues();

uint8_t valueOf(char c) { return kValues[static_cast<unsigned char>(c)]; }

}  // namespace

std::string toBase64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    size_t present = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < present ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) out += k <= present ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> fromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    bool last = i + 4 == text.size();
    size_t padding = last ? (text[i + 3] == '=') + (text[i + 2] == '=' && text[i + 3] == '=') : 0u;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      uint8_t value = k < 4 - padding ? valueOf(text[i + k]) : 0;
      if (value == kNone) return std::nullopt;
      group = group << 6 | value;
    }
    // Bits that no byte uses must be 0: two texts never mean the same bytes.
    if (padding != 0 && (group & ((1u << (8 * padding)) - 1)) != 0) return std::nullopt;
    for (size_t k = 0; k < 3 - padding; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 0xFF);
  }
  return out;
}

size_t base64Length(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && (valueOf(text[length]) != kNone || text[length] == '=')) ++length;
  return length;
}

}  // namespace faultline
