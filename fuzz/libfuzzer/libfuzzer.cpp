// libFuzzer's entry points for the target this is linked with.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fuzz/libfuzzer/target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

// libFuzzer reads this section like edge counters.
constexpr size_t kCounters = 4096;
__attribute__((section("__libfuzzer_extra_counters"))) uint8_t counters[kCounters];

// Edits drawn before the input is left as it is, because what they gave is longer than libFuzzer takes.
constexpr uint64_t kDraws = 4;

// libFuzzer takes -1 for "keep this out of the corpus" from LLVM 15 on; before, 0 is the only answer.
#if defined(__clang__) && __clang_major__ >= 15
constexpr int kNotAnInput = -1;
#else
constexpr int kNotAnInput = 0;
#endif

size_t copyOut(const std::string& text, uint8_t* data, size_t max_size) {
  if (text.empty() || text.size() > max_size) {
    return 0;
  }
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

std::string_view view(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

namespace faultline::fuzz {

void seen(std::string_view feature) {
  uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  for (char c : feature) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  uint8_t& counter = counters[hash % kCounters];
  counter = static_cast<uint8_t>(std::min<int>(counter + 1, 255));
}

}  // namespace faultline::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  at::set_num_threads(1);
  for (int i = 1; i < *argc; ++i) {
    constexpr std::string_view flag = "-artifact_prefix=";
    std::string_view argument = (*argv)[i];
    if (argument.substr(0, flag.size()) == flag) {
      faultline::fuzz::setFindingPrefix(std::string(argument.substr(flag.size())));
    }
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return faultline::fuzz::target.run(view(data, size)) ? 0 : kNotAnInput;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const auto& target = faultline::fuzz::target;
  if (target.mutate == nullptr) return LLVMFuzzerMutate(data, size, max_size);
  for (uint64_t i = 0; i < kDraws; ++i) {
    // libFuzzer's seeds are 32 bits wide.
    uint64_t own = seed + (i << 32);
    if (size_t written = copyOut(target.mutate(view(data, size), own), data, max_size)) return written;
  }
  return size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  const auto& target = faultline::fuzz::target;
  return target.cross == nullptr
             ? 0
             : copyOut(target.cross(view(a, a_size), view(b, b_size), seed), out, max_size);
}
