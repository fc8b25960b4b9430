// What went wrong, out of all that torch says about it.
#pragma once
#include <string_view>

namespace faultline {

// The line of `text` that says what went wrong. The interpreter wraps an exception into tracebacks, each with
// a line "CLASS: message" behind it, and what is innermost comes last: so the last such line, or the last
// with "RuntimeError:"; else the first line that is not blank. RuntimeError is what torch throws for
// everything and is left out; other classes stay.
std::string_view decisiveLine(std::string_view text);

}  // namespace faultline
