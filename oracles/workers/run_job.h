// One job done in this process: the common part of a worker and of --in-process.
#pragma once
#include "oracles/workers/job.h"
#include "oracles/workers/recorder.h"

namespace faultline {

// Every step is noted in `recorder` first (nullptr: nowhere).
JobReport runJob(const Job& job, FlightRecorder* recorder);

}  // namespace faultline
