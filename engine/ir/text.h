// How single values look in IR text.
#pragma once
#include <string>
#include <string_view>

namespace faultline {

// With the quotes. Bytes that are not printable ASCII become three octal digits, as in libtorch's own output.
std::string quotedText(std::string_view bytes);

// The shortest decimal that reads back as the same number; always with a '.', an exponent, or as inf, -inf,
// nan, so that it is never mistaken for an int. The sign and payload of a NaN are not kept.
std::string floatText(double value);
std::string floatText(float value);

}  // namespace faultline
