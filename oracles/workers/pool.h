// Worker processes as a JobRunner.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "oracles/workers/death.h"
#include "oracles/workers/process.h"
#include "oracles/workers/runner.h"

namespace faultline {

class WorkerPool : public JobRunner {
 public:
  explicit WorkerPool(RunnerOptions options);
  ~WorkerPool() override;

  uint64_t submit(Job job) override;
  size_t room() const override;
  Result<std::optional<JobOutcome>> next(std::chrono::milliseconds wait) override;

 private:
  struct Slot;

  Result<void> start(Slot& slot);
  Result<void> assign();
  Result<void> look(Slot& slot);
  Result<void> onLine(Slot& slot, const std::string& line);
  Result<void> bury(Slot& slot, EndReason reason);
  std::chrono::milliseconds patience(Clock::time_point until) const;

  RunnerOptions options_;
  std::vector<std::unique_ptr<Slot>> slots_;  // the last one is for fresh jobs
  std::deque<Job> queue_, fresh_queue_;
  std::deque<JobOutcome> done_;
  uint64_t last_id_ = 0;
};

}  // namespace faultline
