// faultline profile --pruning: gradients that nobody needs, ours against libtorch's executor.
#pragma once
#include <string>

#include "faultline/error.h"
#include "fuzz/cli/exit_code.h"

namespace faultline::cli {

// `json`: where to write it; empty: nowhere.
Result<ExitCode> runPruningTable(const std::string& json);

}  // namespace faultline::cli
