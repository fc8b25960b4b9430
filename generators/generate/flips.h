// How one run comes to differ from another: sizes, dtypes, layouts, gradients, modes, branches.
#pragma once
#include "generators/case/case.h"
#include "generators/choices/choices.h"

namespace faultline {

// Makes one change to `run`, a run of `c` or a copy of one; false: there was nothing to change. Whether the
// graph bears it is for the caller to find out. `empty_sizes`: a size may become 0.
bool flipRun(const Case& c, CaseRun& run, Choices& choices, bool empty_sizes);
// The same, of requires_grad alone.
bool flipRequiresGradOf(const Case& c, CaseRun& run, Choices& choices);

}  // namespace faultline
