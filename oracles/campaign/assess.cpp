#include "oracles/campaign/assess.h"

#include <limits>

#include <fmt/format.h>

#include "oracles/lane.h"

namespace faultline {

namespace {

constexpr unsigned kRepeats = 3;
constexpr const char* kGenerator = "generator";
constexpr const char* kJudge = "judge";

// For a result that holds an error or, because a signal came, nothing.
template <class To, class From>
Result<std::optional<To>> withoutValue(const Result<std::optional<From>>& from) {
  if (!from) {
    return tl::make_unexpected(from.error());
  }
  return std::nullopt;
}

std::string groupOf(const FlightRecord& record) {
  if (record.stage == FlightStage::Generating) {
    return kGenerator;
  }
  if (record.stage == FlightStage::Idle || record.lane.empty()) {
    return kJudge;
  }
  const LaneInfo* lane = findLane(record.lane);
  return lane != nullptr ? lane->group : record.lane;
}

Job freshJob(const Job& how, const std::string& text, std::vector<std::string> lanes, unsigned repeat) {
  Job job;
  job.text = text;
  job.judge = how.judge;
  job.judge.lanes = std::move(lanes);
  job.repeat = repeat;
  job.timeout = how.timeout * repeat;
  job.fresh = true;
  return job;
}

void append(CaseResult& to, CaseResult from) {
  to.judgements.insert(to.judgements.end(), from.judgements.begin(), from.judgements.end());
  to.lane_seconds.insert(to.lane_seconds.end(), from.lane_seconds.begin(), from.lane_seconds.end());
  if (to.skip.empty()) to.skip = from.skip;
  if (to.reference_error.empty()) to.reference_error = from.reference_error;
}

// One process per lane. The reference comes first and alone: what kills it kills every lane.
Result<std::optional<CaseResult>> laneByLane(Conductor& conductor, const Job& how, const std::string& text,
                                             const std::vector<std::string>& lanes, std::string& log) {
  CaseResult result;
  std::vector<std::vector<std::string>> turns{{}};
  for (const std::string& lane : lanes) {
    turns.push_back({lane});
  }
  for (const std::vector<std::string>& turn : turns) {
    Result<std::optional<JobOutcome>> outcome = conductor.await(freshJob(how, text, turn, 1));
    if (!outcome || !*outcome) {
      return withoutValue<CaseResult>(outcome);
    }
    if ((*outcome)->death) {
      log = (*outcome)->death->log;
      result.judgements.push_back(deathJudgement(*(*outcome)->death));
      if (turn.empty()) {
        break;
      }
    } else if (!(*outcome)->report.results.empty()) {
      append(result, std::move((*outcome)->report.results.front()));
    }
  }
  if (result.failed()) {
    result.skip.clear();
  }
  return result;
}

std::vector<std::string> signaturesOf(const CaseResult& result, const Selection& selected) {
  std::set<std::string> signatures;
  for (const Judgement& judgement : result.judgements) {
    if (judgement.verdict.failed() && selected(judgement)) {
      signatures.insert(judgement.signature);
    }
  }
  return {signatures.begin(), signatures.end()};
}

}  // namespace

bool isDeathGroup(std::string_view group) {
  return group == "reference" || group == kGenerator || group == kJudge;
}

std::string deathSignature(const Death& death) {
  return Verdict::failure(death.kind, death.detail, death.message, 0)
      .signature(kExecution, groupOf(death.record));
}

Judgement deathJudgement(const Death& death) {
  Judgement judgement;
  judgement.oracle = kExecution;
  judgement.group = groupOf(death.record);
  judgement.lane = death.record.lane.empty() ? judgement.group : death.record.lane;
  judgement.verdict = Verdict::failure(death.kind, death.detail, death.message, 0);
  judgement.signature = deathSignature(death);
  return judgement;
}

bool everyJudgement(const Judgement&) { return true; }

std::vector<std::string> Assessment::always(const Selection& selected) const {
  std::vector<std::string> in_all;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const std::vector<std::string> here = signaturesOf(repeats[i], selected);
    std::vector<std::string> both;
    std::set_intersection(in_all.begin(), in_all.end(), here.begin(), here.end(), std::back_inserter(both));
    in_all = i == 0 ? here : both;
  }
  return in_all;
}

std::vector<std::string> Assessment::ever(const Selection& selected) const {
  std::set<std::string> in_any;
  for (const CaseResult& result : repeats) {
    const std::vector<std::string> here = signaturesOf(result, selected);
    in_any.insert(here.begin(), here.end());
  }
  return {in_any.begin(), in_any.end()};
}

Result<std::optional<Assessment>> assess(Conductor& conductor, const Job& how, const std::string& text,
                                         const std::vector<std::string>& lanes, bool dies) {
  Assessment assessment;
  if (!dies) {
    Result<std::optional<JobOutcome>> outcome = conductor.await(freshJob(how, text, lanes, kRepeats));
    if (!outcome || !*outcome) {
      return withoutValue<Assessment>(outcome);
    }
    if (!(*outcome)->death) {
      assessment.repeats = std::move((*outcome)->report.results);
      return assessment;
    }
  }
  for (unsigned i = 0; i < kRepeats; ++i) {
    Result<std::optional<CaseResult>> result = laneByLane(conductor, how, text, lanes, assessment.log);
    if (!result || !*result) {
      return withoutValue<Assessment>(result);
    }
    assessment.repeats.push_back(std::move(**result));
  }
  return assessment;
}

Result<std::optional<double>> referenceSeconds(Conductor& conductor, const Job& how,
                                               const std::string& text) {
  Result<std::optional<JobOutcome>> outcome = conductor.await(freshJob(how, text, {}, 1));
  if (!outcome || !*outcome) {
    return withoutValue<double>(outcome);
  }
  if ((*outcome)->death) {
    const bool endless = (*outcome)->death->kind == FailureKind::timeout;
    return endless ? std::numeric_limits<double>::infinity() : 0.0;
  }
  double seconds = 0;
  for (const CaseResult& result : (*outcome)->report.results) {
    for (const auto& [lane, used] : result.lane_seconds) {
      seconds += used;
    }
  }
  return seconds;
}

Result<std::optional<std::string>> recoverText(Conductor& conductor, const Job& job,
                                               const FlightRecord& record) {
  if (!job.generate) {
    return job.text;
  }
  if (record.stage == FlightStage::Judging && !record.text_cut) {
    return record.text;
  }
  Job again = job;
  again.fresh = true;
  again.repeat = 0;
  again.want_text = true;
  if (record.stage == FlightStage::Generating) {
    again.generate->stop_before_op = record.op_ordinal;
  }
  Result<std::optional<JobOutcome>> outcome = conductor.await(std::move(again));
  if (!outcome || !*outcome) {
    return withoutValue<std::string>(outcome);
  }
  return (*outcome)->report.text;
}

}  // namespace faultline
