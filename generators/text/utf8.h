// Whether bytes are text.
#pragma once
#include <cstddef>
#include <string_view>

namespace faultline {

// The length of the UTF-8 sequence that begins at `at`; 0: none does.
size_t utf8Sequence(std::string_view text, size_t at);

}  // namespace faultline
