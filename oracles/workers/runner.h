// Does jobs, in worker processes or in this one, and tells how each ended.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "faultline/error.h"
#include "oracles/workers/job.h"
#include "oracles/workers/recorder.h"

namespace faultline {

// How a worker died over a job.
struct Death {
  FailureKind kind = FailureKind::crash;  // crash, timeout, oom, sanitizer
  std::string detail;                     // of the signature: "SIGSEGV:at::native::add", "exit_3", "" …
  std::string message;                    // for people
  std::string log;                        // the last of what it printed
  FlightRecord record;
};

struct JobOutcome {
  Job job;
  std::optional<Death> death;
  JobReport report;  // without a death
};

struct RunnerOptions {
  unsigned jobs = 1;
  bool in_process = false;
  uint64_t rss_limit_mb = 2048;  // 0: none
  uint64_t renew_after = 2000;
  double start_timeout = 120;        // seconds until a worker says hello (loading libtorch on a busy machine)
  std::vector<std::string> command;  // empty: {"/proc/self/exe", "worker"}
  std::vector<std::string> plugins;
  std::string recorder_dir;  // must exist; flight recorders are made in it and removed at the end
};

// Threading: one thread, the one that made it, for all its life: workers are tied to the thread that started
// them.
class JobRunner {
 public:
  virtual ~JobRunner() = default;  // kills what still runs

  // Queues a job and returns its id. Fresh jobs overtake the others, and run besides them.
  virtual uint64_t submit(Job job) = 0;

  // How many jobs may still be queued so that no worker runs dry.
  virtual size_t room() const = 0;

  // The next job that is done, in any order; nothing when there was none within `wait` or a signal arrived
  // before. An Error says that no more jobs can be done at all: a worker cannot be started, or the recorder
  // not be written.
  virtual Result<std::optional<JobOutcome>> next(std::chrono::milliseconds wait) = 0;
};

// Never fails for what a worker may do; workers are started by the first call of `next`.
std::unique_ptr<JobRunner> makeRunner(const RunnerOptions& options);

}  // namespace faultline
