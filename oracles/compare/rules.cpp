#include "oracles/compare/rules.h"

#include "oracles/exec/errors.h"

namespace faultline {

bool sameStrides(const std::vector<int64_t>& sizes, const std::vector<int64_t>& a,
                 const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return false;
  for (const int64_t size : sizes) {
    if (size == 0) return true;
  }
  for (size_t d = 0; d < sizes.size() && d < a.size(); ++d) {
    if (sizes[d] != 1 && a[d] != b[d]) return false;
  }
  return true;
}

bool sameError(const ErrorTrace& a, const ErrorTrace& b) {
  constexpr const char* kAnyClass = "RuntimeError";
  if (a.type != b.type && a.type != kAnyClass && b.type != kAnyClass) return false;
  return a.detail == b.detail || !isKnownError(a.detail) || !isKnownError(b.detail);
}

}  // namespace faultline
