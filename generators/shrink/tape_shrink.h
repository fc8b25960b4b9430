// Smaller tapes. A generator labels what it draws with spans (one per op), so that a candidate drops whole
// ops and the rest of the case stays what it was: Hypothesis's idea.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "generators/choices/choices.h"

namespace faultline {

// One way to make a tape simpler: choices [begin, end) become `with`. Small, so that thousands can be listed
// and each is only carried out when it is tried.
struct TapeEdit {
  size_t begin = 0, end = 0;
  std::vector<uint64_t> with;
  std::vector<uint64_t> apply(const std::vector<uint64_t>& choices) const;
  bool operator==(const TapeEdit&) const = default;
};

// Edits worth trying, in this order: the zeros at the end dropped, spans dropped (longest first), spans
// replaced by a span of their own label inside them, spans made zeros, plain stretches dropped, single
// choices made smaller. Each gives a tape with fewer choices, or with as many and lexically smaller. What it
// means only the generator tells.
std::vector<TapeEdit> shrinkEdits(const Tape& recorded);

struct MinimizeLimits {
  size_t tries = 5000;  // calls of the predicate
};

// Greedy: takes the first edit whose tape still fails (recorded again, so that its spans fit), until none
// does or the limit is reached. `still_fails` returns nothing when the failure is gone.
Tape minimizeTape(Tape failing,
                  const std::function<std::optional<Tape>(const std::vector<uint64_t>&)>& still_fails,
                  MinimizeLimits limits = {});

}  // namespace faultline
