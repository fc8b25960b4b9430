#include "engine/support/check.h"

#include <cstdio>
#include <cstdlib>

namespace faultline::detail {

void checkFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "faultline: broken invariant at %s:%d: %s: %s\n", file, line, condition,
               message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace faultline::detail
