// Executes a case in the lanes asked for and lets the oracles judge: the reference twice (two that differ are
// Skip(reference_nondeterministic)), each lane, other precisions where numbers differ. Runs in the calling
// process; workers call it (oracles/workers).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "generators/case/case.h"
#include "oracles/oracle.h"
#include "oracles/trace.h"
#include "oracles/verdict.h"

namespace faultline {

struct JudgeOptions {
  std::vector<std::string> lanes;    // lane names
  std::vector<std::string> oracles;  // oracle names; empty: all
  OracleOptions oracle;
  bool confirm_in_other_precision = true;  // numbers that differ: OtherPrecisions of judge.cpp says how
  // Called before each step, for the flight recorder: lane, run, phase ("reference", 0, "forward"); the phase
  // before a lane's first is "prepare".
  std::function<void(const std::string& lane, int run, const std::string& phase)> step;
  // Called with the trace of each lane before it is judged. May be empty.
  std::function<void(const Trace&)> observe;
};

struct Judgement {
  std::string oracle, lane, group;
  Verdict verdict = Verdict::skip("not_judged");
  std::string signature;  // of a failure
};

struct CaseResult {
  std::string skip;  // not empty: the case as a whole was not judged, and why
  // The first thing that the reference threw: "run 1, backward0: …", a line. Lanes have to throw alike.
  std::string reference_error;
  std::vector<Judgement> judgements;
  std::vector<std::pair<std::string, double>> lane_seconds;
  std::vector<ShareTrace> shares;  // of all lanes
  bool failed() const;
};

CaseResult judgeCase(const Case& c, const JudgeOptions& options);

}  // namespace faultline
