#include "oracles/workers/pool.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace faultline {

using std::chrono::milliseconds;

namespace {

// A worker that eats memory at full speed must not get far between two looks.
constexpr milliseconds kMemoryLook{20};
constexpr milliseconds kLook{100};
constexpr int kStartAttempts = 3;

// A field of a message that may be anything.
uint64_t numberIn(const nlohmann::json& message, const char* field) {
  const bool there = message.is_object() && message.contains(field) && message.at(field).is_number_unsigned();
  return there ? message.at(field).get<uint64_t>() : 0;
}

milliseconds seconds(double value) { return milliseconds(static_cast<int64_t>(value * 1000)); }

// A dead worker's pipe must give EPIPE, and its status must be there to be read, whatever the caller's
// program set.
void setSignalDispositions() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    ::signal(SIGPIPE, SIG_IGN);
  }
  if (::sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
    ::signal(SIGCHLD, SIG_DFL);
  }
}

}  // namespace

struct WorkerPool::Slot {
  enum class State { Absent, Starting, Idle, Busy };
  std::string recorder;
  State state = State::Absent;
  std::optional<ChildProcess> process;
  Clock::time_point deadline;
  Job job;
  uint64_t judged = 0;
  int failed_starts = 0;
  bool fresh_only = false;
};

WorkerPool::WorkerPool(RunnerOptions options) : options_(std::move(options)) {
  setSignalDispositions();
  if (options_.command.empty()) {
    options_.command = {"/proc/self/exe", "worker"};
  }
  for (unsigned i = 0; i <= std::max(options_.jobs, 1U); ++i) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->recorder = fmt::format("{}/worker-{}.fdr", options_.recorder_dir, i);
  }
  slots_.back()->fresh_only = true;
}

WorkerPool::~WorkerPool() {
  for (const auto& slot : slots_) {
    slot->process.reset();
    std::error_code ignored;
    std::filesystem::remove(slot->recorder, ignored);
  }
}

uint64_t WorkerPool::submit(Job job) {
  job.id = ++last_id_;
  (job.fresh ? fresh_queue_ : queue_).push_back(std::move(job));
  return last_id_;
}

size_t WorkerPool::room() const {
  // One waiting job per worker hides the time between an answer and the next question.
  const size_t wanted = slots_.size() - 1;
  return wanted > queue_.size() ? wanted - queue_.size() : 0;
}

Result<void> WorkerPool::start(Slot& slot) {
  // The recorder is made anew, so that nothing of an earlier death can be read as this one's.
  Result<void> made = FlightRecorder::create(slot.recorder);
  if (!made) {
    return made;
  }
  std::vector<std::string> arguments = options_.command;
  arguments.insert(arguments.end(), {"--recorder", slot.recorder, "--parent", std::to_string(::getpid())});
  for (const std::string& plugin : options_.plugins) {
    arguments.insert(arguments.end(), {"--plugin", plugin});
  }
  Result<ChildProcess> process = ChildProcess::start(arguments);
  if (!process) {
    return tl::make_unexpected(process.error());
  }
  slot.process = std::move(*process);
  slot.state = Slot::State::Starting;
  slot.deadline = Clock::now() + seconds(options_.start_timeout);
  slot.judged = 0;
  return {};
}

Result<void> WorkerPool::assign() {
  for (const auto& slot : slots_) {
    std::deque<Job>& queue = slot->fresh_only ? fresh_queue_ : queue_;
    if (queue.empty()) {
      continue;
    }
    if (slot->state == Slot::State::Absent) {
      Result<void> started = start(*slot);
      if (!started) {
        return started;
      }
    }
    if (slot->state == Slot::State::Idle) {
      slot->job = std::move(queue.front());
      queue.pop_front();
      slot->process->send(toLine(slot->job));
      slot->state = Slot::State::Busy;
      slot->deadline = Clock::now() + seconds(slot->job.timeout);
    }
  }
  return {};
}

Result<void> WorkerPool::onLine(Slot& slot, const std::string& line) {
  const nlohmann::json message = nlohmann::json::parse(line, nullptr, false);
  if (slot.state == Slot::State::Starting) {
    if (numberIn(message, "hello") != kWorkerProtocol) {
      return bury(slot, EndReason::Protocol);
    }
    slot.state = Slot::State::Idle;
    slot.failed_starts = 0;
    return {};
  }
  Result<JobReport> report = reportFromJson(message);
  if (slot.state != Slot::State::Busy || !report || numberIn(message, "id") != slot.job.id) {
    return bury(slot, EndReason::Protocol);
  }
  done_.push_back({std::move(slot.job), std::nullopt, std::move(*report)});
  slot.state = Slot::State::Idle;
  if (slot.fresh_only || ++slot.judged >= options_.renew_after) {
    slot.process.reset();
    slot.state = Slot::State::Absent;
  }
  return {};
}

Result<void> WorkerPool::bury(Slot& slot, EndReason reason) {
  // Its stdout has ended: a process that is dying needs a moment until its status is there.
  const Result<int> status =
      slot.process->end(reason == EndReason::Itself ? milliseconds(2000) : milliseconds(0));
  if (!status) {
    return tl::make_unexpected(status.error());
  }
  Result<FlightRecord> record = readFlightRecord(slot.recorder);
  Death death =
      describeDeath(reason, *status, record ? std::move(*record) : FlightRecord{}, slot.process->log());
  slot.process.reset();
  const Slot::State state = std::exchange(slot.state, Slot::State::Absent);
  if (state == Slot::State::Busy) {
    if (death.record.job != slot.job.id) {
      death.record.stage = FlightStage::Idle;
    }
    done_.push_back({std::move(slot.job), std::move(death), {}});
  } else if (state == Slot::State::Starting && ++slot.failed_starts >= kStartAttempts) {
    return fail(ErrorKind::Io,
                fmt::format("no worker can be started ({}): {}", options_.command.front(), death.message));
  }
  return {};
}

Result<void> WorkerPool::look(Slot& slot) {
  slot.process->transfer();
  while (slot.process) {
    const std::optional<std::string> line = slot.process->takeLine();
    if (!line) {
      break;
    }
    Result<void> handled = onLine(slot, *line);
    if (!handled) {
      return handled;
    }
  }
  if (!slot.process) {
    return {};
  }
  if (slot.process->flooded()) {
    return bury(slot, EndReason::Protocol);
  }
  if (slot.process->closed()) {
    return bury(slot, EndReason::Itself);
  }
  if (slot.state != Slot::State::Idle && Clock::now() >= slot.deadline) {
    return bury(slot, EndReason::Deadline);
  }
  if (options_.rss_limit_mb != 0 && slot.process->residentBytes() > options_.rss_limit_mb << 20) {
    return bury(slot, EndReason::Memory);
  }
  return {};
}

milliseconds WorkerPool::patience(Clock::time_point until) const {
  milliseconds least = kLook;
  for (const auto& slot : slots_) {
    if (slot->state == Slot::State::Busy && options_.rss_limit_mb != 0) {
      least = kMemoryLook;
    }
  }
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  return std::clamp(left, milliseconds(0), least);
}

Result<std::optional<JobOutcome>> WorkerPool::next(milliseconds wait) {
  const Clock::time_point until = Clock::now() + wait;
  for (;;) {
    if (!done_.empty()) {
      JobOutcome outcome = std::move(done_.front());
      done_.pop_front();
      return outcome;
    }
    Result<void> assigned = assign();
    if (!assigned) {
      return tl::make_unexpected(assigned.error());
    }
    std::vector<pollfd> fds;
    for (const auto& slot : slots_) {
      if (slot->process) {
        slot->process->watch(fds);
      }
    }
    const int polled = ::poll(fds.data(), fds.size(), static_cast<int>(patience(until).count()));
    const bool interrupted = polled < 0 && errno == EINTR;
    for (const auto& slot : slots_) {
      if (slot->process) {
        Result<void> looked = look(*slot);
        if (!looked) {
          return tl::make_unexpected(looked.error());
        }
      }
    }
    if (done_.empty() && (interrupted || Clock::now() >= until)) {
      return std::nullopt;
    }
  }
}

}  // namespace faultline
