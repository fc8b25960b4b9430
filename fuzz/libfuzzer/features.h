// What one judged case did, as names for seen(): libFuzzer then keeps cases that combine ops, pieces,
// refusals and verdicts in new ways.
#pragma once
#include "generators/case/case.h"
#include "oracles/judge.h"

namespace faultline::fuzz {

void noteCase(const Case& c);        // ops, pairs of ops, blocks, traits
void noteTrace(const Trace& trace);  // pieces, refusals, outcomes of phases
void noteResult(const CaseResult& result);

}  // namespace faultline::fuzz
