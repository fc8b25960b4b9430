// Invariants of our own code. A broken one aborts in every build type: no preset defines NDEBUG, and nothing
// catches this, so that a fuzzer sees it as a crash.
#pragma once
#include <string>

namespace faultline::detail {

[[noreturn]] void checkFailed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace faultline::detail

// FAULTLINE_CHECK(condition, "message"): `message` may be any expression that makes a std::string.
#define FAULTLINE_CHECK(condition, message)                                        \
  do {                                                                             \
    if (!(condition)) {                                                            \
      ::faultline::detail::checkFailed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                              \
  } while (false)
