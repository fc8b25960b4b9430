// Jobs done in the calling process, one after the other: for debuggers and sanitizers. Same interface; a job
// that crashes, hangs or eats all memory takes the program with it (the flight recorder still tells which it
// was).
#pragma once
#include <deque>

#include "oracles/workers/runner.h"

namespace faultline {

class InProcessRunner : public JobRunner {
 public:
  explicit InProcessRunner(RunnerOptions options);
  ~InProcessRunner() override;

  uint64_t submit(Job job) override;
  size_t room() const override { return queue_.empty() ? 1 : 0; }
  Result<std::optional<JobOutcome>> next(std::chrono::milliseconds wait) override;

 private:
  RunnerOptions options_;
  std::string path_;
  std::optional<FlightRecorder> recorder_;
  std::deque<Job> queue_;
  uint64_t last_id_ = 0;
};

}  // namespace faultline
