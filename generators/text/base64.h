// Bytes as text (RFC 4648, with padding).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace faultline {

std::string toBase64(std::string_view bytes);
std::optional<std::string> fromBase64(std::string_view text);  // nullopt: not what toBase64 writes
size_t base64Length(std::string_view text);                    // how many leading characters can belong to it

}  // namespace faultline
