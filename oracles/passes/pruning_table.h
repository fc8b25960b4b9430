// Gradients that nobody needs, as applyProfile and libtorch's profiling executor leave them out of the same
// programs. Read from the plans that really run, not from what either promises.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "faultline/error.h"

namespace faultline {

// One side's code for a program, after the run that profiled it.
struct PruningSide {
  uint64_t parts = 0;          // differentiated ahead of time
  uint64_t gradients = 0;      // that their backwards compute
  uint64_t pruned = 0;         // that they would too, without a profile; a list counts as one
  int64_t backward_nodes = 0;  // of these backwards, fewer than without a profile
  uint64_t calls = 0;          // of ops in one backward of the whole program
  // Of PruningRow::needless, in one backward of the whole program, by what ran:
  uint64_t left_out_ahead = 0;  // not in the code of the backwards made ahead of time
  uint64_t left_out_then = 0;   // by eager autograd, which runs the ops outside of them and sees the flags
  uint64_t computed = 0;        // and then thrown away
};

struct PruningRow {
  std::string name, what;
  PruningSide ours, stock;
  uint64_t eager_calls = 0;  // eager autograd computes what is needed and no more
  // Gradients that no tensor needs: one for each operand that does not require grad of each op that takes
  // part in one backward of the whole program, as often as the op does. The same for every way to run it.
  uint64_t needless = 0;
};

// One row per program, always in the same order. Changes the executor's modes and restores them; one thread
// at a time.
Result<std::vector<PruningRow>> pruningTable();

}  // namespace faultline
