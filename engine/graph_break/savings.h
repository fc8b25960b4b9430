// What a part's autograd node no longer does and keeps once gradients are left out.
#pragma once
#include "engine/graph_break/compile.h"
#include "engine/graph_break/parts.h"

namespace faultline {

// Adds to the report the difference between the part differentiated for `without`, as it would be without a
// profile, and `runnable`, which was differentiated for less. A part that autodiff refuses for `without` adds
// nothing.
void addSavings(const WorkingCopy& work, const Part& part, const RunnablePart& runnable,
                const InputMask& without, const KnownGradients& known, ApplyReport& report);

}  // namespace faultline
