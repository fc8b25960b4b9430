// The run of a sample, once more.
#pragma once
#include "faultline/recorder.h"
#include "oracles/exec/execute.h"
#include "oracles/exec/global_state.h"
#include "oracles/passes/pass_table.h"

namespace faultline {

// The first run of the case, on the recorder's graph. False when inputs cannot be made or it throws. Leaves
// the generator where the run left it.
bool runSample(const Recorder& recorder, const Case& c);

}  // namespace faultline
