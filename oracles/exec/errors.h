// An exception as an ErrorTrace. The detail is a row of errors.def where one matches, so that signatures are
// equal on all versions and machines.
#pragma once
#include <exception>
#include <string>
#include <string_view>

#include "engine/support/decisive_line.h"
#include "oracles/trace.h"

namespace faultline {

// `error` must not be null. Never asks a c10::Error for what(): that costs 2 ms and carries addresses.
ErrorTrace describeException(const std::exception_ptr& error);

// The detail of a message: its row in errors.def, else its words without numbers, shapes, quoted names and
// paths.
std::string errorDetail(std::string_view text);
// Whether `detail` is a row of errors.def.
bool isKnownError(std::string_view detail);

}  // namespace faultline
