// What happened when: forwards and backwards of pieces, and hooks between them, in one sequence.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace faultline {

struct TimelineEvent {
  enum class What { Forward, Backward, Hook };
  uint64_t seq = 0;  // order of beginnings, from 0
  What what = What::Forward;
  int piece = -1;        // of a hook: the piece whose backward made it fire
  std::string name;      // of a hook: the parameter or seam it sits on
  double begin_us = 0;   // since the timeline was made or cleared
  double end_us = 0;     // hooks: equal to begin_us
  uint64_t forward = 0;  // forwards: seq; backwards: seq of the forward that made their nodes
};

// Thread-safe: backward runs on autograd's threads. Keeps the newest `capacity` events, so that a training
// loop that never looks does not fill the memory.
class Timeline {
 public:
  static constexpr size_t capacity = 1 << 16;
  Timeline();
  // Returns the event's seq. `forward`: of a backward, its forward's.
  uint64_t begin(TimelineEvent::What what, int piece, uint64_t forward = 0);
  void end(
      uint64_t seq);  // may be said again: the last one counts. Never said: it ends when the next one begins
  // A forward that has run, between two times of std::chrono::steady_clock in nanoseconds.
  uint64_t forward(int piece, int64_t begin_ns, int64_t end_ns);
  // Belongs to the piece whose backward began last in the same backward pass, which may run inside a hook of
  // another
  // (-1: none; outside of a pass: none since the last forward).
  void hook(std::string name);
  std::vector<TimelineEvent> events() const;
  void clear();
  std::string chromeTrace() const;  // JSON of the Chrome trace format, one lane per piece
  // A picture with one lane per piece, hooks between the bars of the pieces; of the first 2,000 events.
  std::string svg() const;

 private:
  double sinceStart(int64_t nanoseconds) const;
  double now() const;
  uint64_t add(TimelineEvent::What what, int piece, uint64_t forward, double begin, double end);  // locked
  mutable std::mutex mutex_;
  std::deque<TimelineEvent> events_;
  uint64_t next_seq_ = 0;
  struct LastBegun {
    int task;  // autograd's number of the pass; -1: outside of one
    int piece;
  };
  std::vector<LastBegun> last_backwards_;  // of the newest passes
  int64_t start_ns_ = 0;
};

}  // namespace faultline
