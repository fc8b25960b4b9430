// Feeds a JobRunner and hands its outcomes on in the order of the jobs, whatever order they end in: what a
// campaign finds must not depend on the number of workers.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>

#include "faultline/error.h"
#include "oracles/workers/runner.h"
#include "oracles/workers/system.h"

namespace faultline {

class Conductor {
 public:
  using Source = std::function<std::optional<Job>(uint64_t position)>;  // nothing: there are no more
  enum class Then { GoOn, Stop };
  using Commit = std::function<Result<Then>(uint64_t position, JobOutcome outcome)>;

  // `tick` is called a few times a second. After `stop_at` no job is begun, and those begun get a short
  // grace.
  Conductor(JobRunner& runner, std::function<void()> tick, std::optional<Clock::time_point> stop_at);

  // Positions from `first` on. Ends when the source does, at the time limit, on a signal, or when `commit`
  // says so; the positions committed are always without a gap.
  Result<void> run(uint64_t first, const Source& source, const Commit& commit);

  // From within `commit`: one job more, ahead of the others, while these go on. Nothing: a signal came.
  Result<std::optional<JobOutcome>> await(Job job);

 private:
  Result<void> turn();  // feeds, waits a little, stores what ended
  void feed();

  JobRunner& runner_;
  std::function<void()> tick_;
  std::optional<Clock::time_point> stop_at_;
  Clock::time_point last_tick_;
  const Source* source_ = nullptr;
  bool source_ended_ = false;
  uint64_t begun_ = 0, committed_ = 0;        // positions
  std::map<uint64_t, uint64_t> position_of_;  // by job id
  std::map<uint64_t, JobOutcome> ended_;      // by position
  std::map<uint64_t, JobOutcome> awaited_;    // by job id
};

}  // namespace faultline
