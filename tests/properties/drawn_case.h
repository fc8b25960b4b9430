// A generated case as a RapidCheck value. RapidCheck hands over raw choices; its own shrinking of integers
// and vectors would only break programs apart, so the shrinks are edits along the tape's spans: whole ops go
// first.
#pragma once
#include <rapidcheck.h>

#include <ostream>
#include <utility>
#include <vector>

#include "generators/case/case.h"
#include "generators/generate/generate.h"
#include "generators/shrink/tape_shrink.h"

namespace faultline::properties {

struct DrawnCase {
  Tape tape;  // as recorded: what the generator read, with its spans
  Case value;
};

inline std::ostream& operator<<(std::ostream& out, const DrawnCase& drawn) {
  return out << writeCase(drawn.value) << "\n" << writeTape(drawn.tape);
}

// Values of tensors do not matter to shrinking: one seed for all.
constexpr uint64_t kValueSeed = 1;

inline DrawnCase drawCase(std::vector<uint64_t> given, const GenerateOptions& options = {}) {
  Choices choices = Choices::fromTape(std::move(given));
  Case value = generateCase(choices, kValueSeed, options);
  return {choices.tape(), std::move(value)};
}

inline rc::Seq<DrawnCase> smallerCases(const DrawnCase& from, const GenerateOptions& options) {
  auto candidates = rc::seq::map(
      rc::seq::fromContainer(shrinkEdits(from.tape)),
      [from, options](const TapeEdit& edit) { return drawCase(edit.apply(from.tape.choices), options); });
  // A tape that has run out is read as zeros, and recorded with them: only what is simpler as recorded may
  // follow, or shrinking would go round in circles.
  return rc::seq::filter(std::move(candidates), [size = from.tape.choices.size(),
                                                 choices = from.tape.choices](const DrawnCase& smaller) {
    const auto& other = smaller.tape.choices;
    return other.size() != size ? other.size() < size : other < choices;
  });
}

// From tapes of 512 to 4,096 choices: RapidCheck's default vectors have a median of 17 and would give empty
// programs.
inline rc::Gen<DrawnCase> drawnCases(GenerateOptions options = {}) {
  return [options](const rc::Random& random, int) {
    rc::Random stream = random;
    std::vector<uint64_t> given(512 + stream.next() % (4096 - 512 + 1));
    for (auto& choice : given) {
      choice = stream.next();
    }
    return rc::shrinkable::shrinkRecur(drawCase(std::move(given), options), [options](const DrawnCase& from) {
      return smallerCases(from, options);
    });
  };
}

}  // namespace faultline::properties
