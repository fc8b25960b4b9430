// Parts of the case reader (internal to generators/case).
#pragma once
#include "generators/case/case.h"

namespace faultline {

// Where the parts of a case stand in its text, for errors that are found when all of it is known.
struct CasePlaces {
  size_t graph_line = 0;
  size_t breaks_line = 0;
  std::vector<size_t> runs, hooks;                  // lines
  std::vector<std::vector<size_t>> backwards;       // per run, per phase: lines
  std::vector<std::vector<SourceLocation>> inputs;  // per run, per input
};

// Refuses what the graph contradicts: inputs that do not fit, hooks and backward phases of what is not there.
Result<void> checkCase(const Case& c, const CasePlaces& places);

}  // namespace faultline
