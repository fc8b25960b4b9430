// `expect:` lines and the torch versions they are about (internal to generators/case).
#pragma once
#include "generators/case/case.h"
#include "generators/text/scanner.h"

namespace faultline {

// GROUP ["@" RANGE] ("pass" | SIGNATURE…), up to the line's end or a comment.
Result<Expectation> scanExpectation(Scanner& scanner);
std::string writeExpectation(const Expectation& expectation);

}  // namespace faultline
