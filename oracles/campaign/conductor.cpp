#include "oracles/campaign/conductor.h"

#include "oracles/campaign/interrupts.h"

namespace faultline {

namespace {
using std::chrono::milliseconds;
constexpr milliseconds kTurn{100};
constexpr milliseconds kTick{250};
constexpr auto kGrace = std::chrono::seconds(3);
// While one position is being looked into, the others may run ahead this far.
constexpr uint64_t kAhead = 256;
}  // namespace

Conductor::Conductor(JobRunner& runner, std::function<void()> tick, std::optional<Clock::time_point> stop_at)
    : runner_(runner), tick_(std::move(tick)), stop_at_(stop_at), last_tick_(Clock::now()) {}

void Conductor::feed() {
  source_ended_ = source_ended_ || (stop_at_ && Clock::now() >= *stop_at_) || Interrupts::caught() != 0;
  for (size_t room = runner_.room(); room != 0 && !source_ended_ && begun_ - committed_ < kAhead; --room) {
    std::optional<Job> job = (*source_)(begun_);
    if (!job) {
      source_ended_ = true;
      return;
    }
    position_of_[runner_.submit(std::move(*job))] = begun_;
    ++begun_;
  }
}

Result<void> Conductor::turn() {
  feed();
  Result<std::optional<JobOutcome>> next = runner_.next(kTurn);
  if (!next) {
    return tl::make_unexpected(next.error());
  }
  if (*next) {
    const uint64_t id = (*next)->job.id;
    const auto position = position_of_.find(id);
    if (position == position_of_.end()) {
      awaited_.emplace(id, std::move(**next));
    } else {
      ended_.emplace(position->second, std::move(**next));
      position_of_.erase(position);
    }
  }
  if (tick_ && Clock::now() - last_tick_ >= kTick) {
    last_tick_ = Clock::now();
    tick_();
  }
  return {};
}

Result<void> Conductor::run(uint64_t first, const Source& source, const Commit& commit) {
  source_ = &source;
  begun_ = committed_ = first;
  for (;;) {
    feed();
    if (committed_ == begun_ || Interrupts::caught() != 0) {
      return {};
    }
    const auto head = ended_.find(committed_);
    if (head == ended_.end()) {
      if (stop_at_ && Clock::now() >= *stop_at_ + kGrace) {
        return {};
      }
      Result<void> turned = turn();
      if (!turned) {
        return turned;
      }
      continue;
    }
    JobOutcome outcome = std::move(head->second);
    ended_.erase(head);
    Result<Then> then = commit(committed_, std::move(outcome));
    if (!then) {
      return tl::make_unexpected(then.error());
    }
    if (*then == Then::Stop) {
      return {};
    }
    ++committed_;
  }
}

Result<std::optional<JobOutcome>> Conductor::await(Job job) {
  const uint64_t id = runner_.submit(std::move(job));
  while (Interrupts::caught() == 0) {
    const auto found = awaited_.find(id);
    if (found != awaited_.end()) {
      JobOutcome outcome = std::move(found->second);
      awaited_.erase(found);
      return outcome;
    }
    Result<void> turned = turn();
    if (!turned) {
      return tl::make_unexpected(turned.error());
    }
  }
  return std::nullopt;
}

}  // namespace faultline
