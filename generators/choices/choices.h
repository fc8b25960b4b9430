// All randomness of the generators: a stream of bounded choices that is recorded, so that a case can be made
// again from its tape and shrunk by dropping whole spans (the idea of Hypothesis).
//
// Own integer mapping throughout: std::*_distribution differs between standard libraries.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "faultline/error.h"

namespace faultline {

// SplitMix64. For streams that are not choices (values of tensors) and for deriving seeds.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t bound);  // uniform in [0, bound), bound > 0
  double uniform();                // [0, 1), 53 bits
  double normal();  // mean 0, variance 1, in (-6, 6): a sum of uniforms, so no libm has a say in it

 private:
  uint64_t state_;
};

// A seed for part `index` of something seeded with `seed`.
uint64_t mixSeed(uint64_t seed, uint64_t index);

struct TapeSpan {
  std::string label;
  size_t begin = 0, end = 0;  // into `choices`
  size_t depth = 0;
  bool operator==(const TapeSpan&) const = default;
};

// A recorded list of choices. Any tape, cut or overlong, gives a valid case: a choice is taken modulo its
// bound, and behind the end every choice is 0.
struct Tape {
  std::vector<uint64_t> choices;
  std::vector<TapeSpan> spans;  // properly nested, outer before inner; informative, not read back by Choices
  std::vector<std::pair<std::string, std::string>>
      options;  // `name: value` lines, such as the generator's options
  bool operator==(const Tape&) const = default;
};

Result<Tape> readTape(
    std::string_view text);  // first line `faultline tape 1`; grammar: generators/choices/README.md
std::string writeTape(const Tape& tape);  // leaves out spans that do not nest or lie outside the choices

class Choices {
 public:
  static Choices fromSeed(uint64_t seed);
  static Choices fromTape(std::vector<uint64_t> choices);
  static Choices fromBytes(const uint8_t* data, size_t size);  // for fuzzers that hand over raw bytes

  // Uniform in [0, bound); bound > 0. 0 is always the simplest choice, so that shrinking towards 0
  // simplifies.
  uint64_t below(uint64_t bound);
  int64_t between(int64_t low, int64_t high);             // inclusive; `low` is the simplest
  bool flip(uint32_t percent);                            // true in `percent` of 100; false is the simplest
  size_t weighted(const std::vector<uint32_t>& weights);  // index; weights that are all 0 give 0
  // Whether a list goes on. From a seed always: where it ends is another choice. A tape says no by a 0, and
  // where it has run out.
  bool more();
  template <class Container>
  auto& pick(Container& from) {
    return from[below(from.size())];
  }

  // Labels the choices made during its life.
  class Span {
   public:
    Span(Choices& choices, std::string_view label);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Choices& choices_;
    size_t index_;
  };

  const Tape& tape() const { return tape_; }  // what was chosen so far; spans still open end where it ends
  bool exhausted() const;                     // a tape or bytes have run out

 private:
  enum class Source { Seed, Tape, Bytes };
  explicit Choices(Source source) : source_(source), random_(0) {}
  uint64_t draw(uint64_t bound);  // bound 0: all of 64 bits
  Source source_;
  Random random_;
  std::vector<uint64_t> given_;
  std::vector<uint8_t> bytes_;
  size_t position_ = 0;
  std::vector<size_t> open_;  // spans that live, outermost first
  Tape tape_;
};

}  // namespace faultline
