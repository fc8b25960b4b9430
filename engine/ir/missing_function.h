// Stands for a function that a graph refers to and IR text does not hold.
#pragma once
#include <ATen/core/jit_type.h>

namespace faultline {

// The type of values read as `Function`. One function for all: running it raises an error, whatever is
// passed.
c10::TypePtr missingFunctionType();

bool isMissingFunction(const c10::Type& type);

}  // namespace faultline
