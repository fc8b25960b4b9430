// Notes in the flight recorder what a process dies of.
#pragma once
#include <string>
#include <vector>

#include "oracles/workers/recorder.h"

namespace faultline {

// From now on a fatal signal writes its number and the frames of the stack into `note`, which must outlive
// the process, and then kills the process as it would have. In sanitizer builds the sanitizer keeps its own
// handlers.
void installCrashHandler(CrashNote& note);

// "SIGSEGV:at::native::add": the signal and the first frame that is ours or libtorch's, without arguments and
// template arguments; the signal alone where no such frame has a name.
std::string describeCrash(int signal, const std::vector<FlightRecord::Frame>& frames);

// "at::native::(anonymous namespace)::f<int>(at::Tensor const&)" → "at::native::f", as a word.
std::string functionName(std::string demangled);

// Letters, digits and ":._-" only, at most `limit` characters: fit for a signature or a file name.
std::string wordOf(std::string_view text, size_t limit);

}  // namespace faultline
