#include "engine/support/check.h"
#include "generators/choices/choices.h"

namespace faultline {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

uint64_t scramble(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t Random::next() {
  state_ += kGolden;
  return scramble(state_);
}

uint64_t Random::below(uint64_t bound) {
  FAULTLINE_CHECK(bound > 0, "a random number below nothing");
  // The lowest 2^64 mod bound values would come once too often.
  uint64_t biased = (0 - bound) % bound;
  uint64_t drawn = next();
  while (drawn < biased) drawn = next();
  return drawn % bound;
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::normal() {
  // Twelve uniforms have variance 1. Summed as integers and scaled by a power of two: exact, so the same
  // everywhere.
  int64_t sum = 0;
  for (int i = 0; i < 6; ++i) {
    uint64_t two = next();
    sum += static_cast<int64_t>(two >> 32) + static_cast<int64_t>(two & 0xFFFFFFFF);
  }
  return static_cast<double>(sum - 6 * int64_t{0xFFFFFFFF}) * 0x1p-32;
}

uint64_t mixSeed(uint64_t seed, uint64_t index) {
  return scramble(scramble(seed + kGolden) ^ scramble(index * 2 + kGolden * 3));
}

}  // namespace faultline
