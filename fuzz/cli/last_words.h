// Programs that run in this process, and not in a worker, may take it with them.
#pragma once
#include <string>

namespace faultline::cli {

// From now on a fatal signal (SIGSEGV, SIGFPE, …) prints that the program died of it inside PyTorch, and
// `advice`, before it ends the process as it would have. Nothing in sanitizer builds, which say more.
void leaveLastWords(const std::string& advice);

}  // namespace faultline::cli
