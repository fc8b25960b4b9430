#include <fmt/format.h>

#include "engine/support/check.h"
#include "generators/case/spec.h"
#include "generators/text/scanner.h"

namespace faultline {

Result<at::ScalarType> readDtype(std::string_view text) {
  std::string_view name = text;
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (!name.empty()) {
#define FAULTLINE_DTYPE(scalar, cpp, torch_name, other) \
  if (name == torch_name || name == other) return at::ScalarType::scalar;
#include "generators/case/dtypes.def"
#undef FAULTLINE_DTYPE
  }
  return fail(ErrorKind::Syntax, fmt::format("expected a dtype such as float32, got '{}'", printable(text)));
}

std::string writeDtype(at::ScalarType dtype) {
  switch (dtype) {
#define FAULTLINE_DTYPE(scalar, cpp, torch_name, other) \
  case at::ScalarType::scalar:                          \
    return torch_name;
#include "generators/case/dtypes.def"
#undef FAULTLINE_DTYPE
    default:
      FAULTLINE_CHECK(false, fmt::format("inputs cannot have dtype {}", c10::toString(dtype)));
  }
}

}  // namespace faultline
