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

// One edit in this many is libFuzzer's own, so that the text's own corners are reached too.
constexpr unsigned kByteEditEvery = 16;

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

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  at::set_num_threads(1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  faultline::fuzz::target.run(view(data, size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const auto& target = faultline::fuzz::target;
  if (target.mutate != nullptr && seed % kByteEditEvery != 0) {
    if (size_t written = copyOut(target.mutate(view(data, size), seed), data, max_size)) {
      return written;
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  const auto& target = faultline::fuzz::target;
  return target.cross == nullptr
             ? 0
             : copyOut(target.cross(view(a, a_size), view(b, b_size), seed), out, max_size);
}
