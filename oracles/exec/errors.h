// An exception as an ErrorTrace. The detail is a row of errors.def where one matches, so that signatures are
// equal on all versions and machines.
#pragma once
#include <exception>
#include <string>
#include <string_view>

#include "oracles/trace.h"

namespace faultline {

// `error` must not be null. Never asks a c10::Error for what(): that costs 2 ms and carries addresses.
ErrorTrace describeException(const std::exception_ptr& error);

// The line of `text` that says what went wrong: the last with "RuntimeError:" (the interpreter wraps, the
// innermost is last), else the first that is not blank. Without the class's name.
std::string_view decisiveLine(std::string_view text);

// The detail of a message: its row in errors.def, else its words without numbers, shapes, quoted names and
// paths.
std::string errorDetail(std::string_view text);
// Whether `detail` is a row of errors.def.
bool isKnownError(std::string_view detail);

}  // namespace faultline
