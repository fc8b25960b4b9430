// c10d's rule for buckets of gradients, derived from a case and the pieces it was broken into.
#pragma once
#include <string>

#include "generators/case/case.h"
#include "oracles/trace.h"

namespace faultline {

// What is wrong with `lane.buckets`, as a sentence; empty: nothing, or the case does not ask for c10d's
// buckets (breaks "ddp" without "ddpoptimizer"). In the order gradients become ready a bucket takes one after
// the other and is closed once its bytes reach the cap, the first one of a dtype once they reach the first
// cap; no gradient stands in two; a bucket is complete with a piece that uses one of its parameters, and no
// parameter of it has all its uses in earlier pieces, whose gradients come later.
std::string wrongBucket(const Case& c, const Trace& lane);

}  // namespace faultline
