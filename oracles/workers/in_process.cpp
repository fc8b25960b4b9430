#include "oracles/workers/in_process.h"

#include <ATen/Parallel.h>

#include <filesystem>
#include <thread>

#include "oracles/workers/pool.h"
#include "oracles/workers/run_job.h"

namespace faultline {

InProcessRunner::InProcessRunner(RunnerOptions options)
    : options_(std::move(options)), path_(options_.recorder_dir + "/in-process.fdr") {
  // As in a worker: kernels that split work over threads add in another order.
  at::set_num_threads(1);
}

InProcessRunner::~InProcessRunner() {
  recorder_.reset();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

uint64_t InProcessRunner::submit(Job job) {
  job.id = ++last_id_;
  queue_.insert(job.fresh ? queue_.begin() : queue_.end(), std::move(job));
  return last_id_;
}

Result<std::optional<JobOutcome>> InProcessRunner::next(std::chrono::milliseconds wait) {
  if (!recorder_) {
    Result<void> made = FlightRecorder::create(path_);
    if (!made) {
      return tl::make_unexpected(made.error());
    }
    Result<FlightRecorder> recorder = FlightRecorder::open(path_);
    if (!recorder) {
      return tl::make_unexpected(recorder.error());
    }
    recorder_.emplace(std::move(*recorder));
  }
  if (queue_.empty()) {
    std::this_thread::sleep_for(wait);
    return std::nullopt;
  }
  JobOutcome outcome;
  outcome.job = std::move(queue_.front());
  queue_.pop_front();
  outcome.report = runJob(outcome.job, &*recorder_);
  return outcome;
}

std::unique_ptr<JobRunner> makeRunner(const RunnerOptions& options) {
  if (options.in_process) {
    return std::make_unique<InProcessRunner>(options);
  }
  return std::make_unique<WorkerPool>(options);
}

}  // namespace faultline
