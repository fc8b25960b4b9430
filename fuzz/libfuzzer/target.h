// What a fuzz target is: a name and a function of the input's bytes. Each file of fuzz/targets defines
// `target`; it is linked with libfuzzer.cpp (clang, coverage-guided) or with replay_main.cpp (any compiler,
// files from the corpus).
//
// A target aborts on a finding. libFuzzer ignores return values, so a target cannot report through one.
#pragma once
#include <string>
#include <string_view>

namespace faultline::fuzz {

struct Target {
  const char* name;
  void (*run)(std::string_view bytes);
  // Edits instead of libFuzzer's byte edits, which leave 8 % of case texts readable after one edit and 1 %
  // after two. nullptr: byte edits. Never runs a kernel: an abort here would leave an artifact without
  // contents.
  std::string (*mutate)(std::string_view bytes, unsigned seed);
  std::string (*cross)(std::string_view a, std::string_view b, unsigned seed);
};

extern const Target target;

// Tells libFuzzer that this input did something of this name (an op with a flag, a rule that fired): libtorch
// is not instrumented, so edges alone say little. A no-op without libFuzzer.
void seen(std::string_view feature);

}  // namespace faultline::fuzz
