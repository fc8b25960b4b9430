// Input specs inside a larger text (internal to generators/case).
#pragma once
#include "generators/case/spec.h"
#include "generators/text/scanner.h"

namespace faultline {

// Reads one spec and stops behind it. Errors carry the place in the scanner's text.
Result<InputSpec> scanInputSpec(Scanner& scanner);

}  // namespace faultline
