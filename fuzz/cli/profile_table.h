// faultline profile --passes: what libtorch's passes do to the profile protocol.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "faultline/error.h"
#include "fuzz/cli/exit_code.h"

namespace faultline::cli {

struct PassTableFlags {
  std::string file;  // its graph alone; empty: generated programs
  std::optional<uint64_t> cases, seed;
  std::string json;
};

Result<ExitCode> runPassTable(const PassTableFlags& flags);

}  // namespace faultline::cli
