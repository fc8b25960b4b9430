// RFC 4648 base64 with padding, for the bytes of large tensor constants.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace faultline {

std::string base64Encode(std::string_view bytes);

// nullopt: not what base64Encode writes (other characters, wrong padding or length, bits left over).
std::optional<std::string> base64Decode(std::string_view text);

}  // namespace faultline
