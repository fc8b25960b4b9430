// What a fuzz target is: a name and a function of the input's bytes. Each file of fuzz/targets defines
// `target`; it is linked with libfuzzer.cpp (clang, coverage-guided) or with replay_main.cpp (any compiler,
// files from the corpus).
//
// A target aborts on a finding. libFuzzer ignores return values, so a target cannot report through one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace faultline::fuzz {

struct Target {
  const char* name;
  // False: the bytes are not an input of this target. They are kept out of the corpus, where libFuzzer can.
  bool (*run)(std::string_view bytes);
  // Edits instead of libFuzzer's byte edits, which leave 8 % of case texts readable after one edit and 1 %
  // after two, and make sizes and trip counts of any length. nullptr: byte edits. Never runs a kernel: an
  // abort here would leave an artifact without contents.
  std::string (*mutate)(std::string_view bytes, uint64_t seed);
  std::string (*cross)(std::string_view a, std::string_view b, uint64_t seed);
};

extern const Target target;

// Tells libFuzzer that this input did something of this name (an op with a flag, a rule that fired): libtorch
// is not instrumented, so edges alone say little. A no-op without libFuzzer.
void seen(std::string_view feature);

// Where found() puts its file: a folder with a slash behind it, or the beginning of a name. Empty: here.
void setFindingPrefix(std::string prefix);

// Writes `text` with the signature above it to PREFIX<signature>.case, prints both and aborts.
[[noreturn]] void found(const std::string& signature, const std::string& detail, std::string_view text);

}  // namespace faultline::fuzz
