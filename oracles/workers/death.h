// From a worker's end to the kind and detail of a signature.
#pragma once
#include <string>

#include "oracles/workers/runner.h"

namespace faultline {

enum class EndReason {
  Itself,    // it ended, whatever way
  Deadline,  // the parent killed it: too late …
  Memory,    // … too large …
  Protocol,  // … or not talking sense
};

// `status` as of waitpid.
Death describeDeath(EndReason reason, int status, FlightRecord record, std::string log);

}  // namespace faultline
