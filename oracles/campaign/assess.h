// Looks closer at a case: three times in fresh workers, and lane by lane where workers die of it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "oracles/campaign/conductor.h"
#include "oracles/judge.h"

namespace faultline {

// Name of the oracle in signatures of deaths: nobody's claim was broken but that a case can be executed at
// all.
inline constexpr const char* kExecution = "execution";

// "execution/stock/crash/SIGSEGV:at::native::add": the lane's group, "generator" or "judge" (no lane had
// begun).
std::string deathSignature(const Death& death);
// Whether deaths can have this group although no oracle judges it.
bool isDeathGroup(std::string_view group);
Judgement deathJudgement(const Death& death);

using Selection = std::function<bool(const Judgement&)>;
bool everyJudgement(const Judgement&);

struct Assessment {
  std::vector<CaseResult> repeats;  // three; deaths stand in them as failed judgements
  std::string log;                  // what the last worker that died printed

  // Signatures of the selected judgements that failed in every repeat / in any, sorted.
  std::vector<std::string> always(const Selection& selected = everyJudgement) const;
  std::vector<std::string> ever(const Selection& selected = everyJudgement) const;
};

// Judges the text in these lanes (none: only the reference), lane by lane at once where it `dies`. Nothing: a
// signal came.
Result<std::optional<Assessment>> assess(Conductor& conductor, const Job& how, const std::string& text,
                                         const std::vector<std::string>& lanes, bool dies);

// How long the reference executes the text, once; infinite where it does not end in time, 0 where it dies of
// something else. Nothing: a signal came.
Result<std::optional<double>> referenceSeconds(Conductor& conductor, const Job& how, const std::string& text);

// The text of the case that a worker died of, with the op that was about to be executed in it if it was being
// generated; empty where it cannot be had. Nothing: a signal came.
Result<std::optional<std::string>> recoverText(Conductor& conductor, const Job& job,
                                               const FlightRecord& record);

}  // namespace faultline
