#include "faultline/timeline.h"

#include <algorithm>
#include <chrono>

#include <torch/csrc/autograd/graph_task.h>
#include <nlohmann/json.hpp>

namespace faultline {

namespace {

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr double open_end = -1;
constexpr size_t most_passes = 64;  // that run at once, or in one another

const char* nameOf(TimelineEvent::What what) {
  switch (what) {
    case TimelineEvent::What::Forward:
      return "forward";
    case TimelineEvent::What::Backward:
      return "backward";
    default:
      return "hook";
  }
}

}  // namespace

Timeline::Timeline() : start_ns_(nanoseconds()) {}

double Timeline::sinceStart(int64_t nanoseconds) const {
  return static_cast<double>(nanoseconds - start_ns_) / 1000;
}

double Timeline::now() const { return sinceStart(nanoseconds()); }

uint64_t Timeline::begin(TimelineEvent::What what, int piece, uint64_t forward) {
  std::lock_guard<std::mutex> lock(mutex_);
  return add(what, piece, forward, now(), open_end);
}

uint64_t Timeline::forward(int piece, int64_t begin_ns, int64_t end_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  return add(TimelineEvent::What::Forward, piece, 0, sinceStart(begin_ns), sinceStart(end_ns));
}

uint64_t Timeline::add(TimelineEvent::What what, int piece, uint64_t forward, double begin, double end) {
  const int task = torch::autograd::get_current_graph_task_id();
  auto last = std::find_if(last_backwards_.begin(), last_backwards_.end(),
                           [&](const LastBegun& one) { return one.task == task; });
  if (what == TimelineEvent::What::Backward) {
    if (last == last_backwards_.end()) {
      if (last_backwards_.size() >= most_passes) {
        last_backwards_.erase(last_backwards_.begin());
      }
      last = last_backwards_.insert(last_backwards_.end(), {task, piece});
    }
    last->piece = piece;
  } else if (what == TimelineEvent::What::Forward && task == -1 && last != last_backwards_.end()) {
    last_backwards_.erase(last);
  }
  if (what == TimelineEvent::What::Forward) {
    forward = next_seq_;
  }
  events_.push_back({next_seq_, what, piece, {}, begin, end, forward});
  if (events_.size() > capacity) {
    events_.pop_front();
  }
  return next_seq_++;
}

void Timeline::end(uint64_t seq) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (events_.empty() || seq < events_.front().seq || seq >= next_seq_) {
    return;  // dropped, or of a time before clear()
  }
  events_[seq - events_.front().seq].end_us = now();
}

void Timeline::hook(std::string name) {
  std::lock_guard<std::mutex> lock(mutex_);
  const double at = now();
  const int task = torch::autograd::get_current_graph_task_id();
  auto last = std::find_if(last_backwards_.begin(), last_backwards_.end(),
                           [&](const LastBegun& one) { return one.task == task; });
  const int piece = last == last_backwards_.end() ? -1 : last->piece;
  events_.push_back({next_seq_++, TimelineEvent::What::Hook, piece, std::move(name), at, at, 0});
  if (events_.size() > capacity) {
    events_.pop_front();
  }
}

std::vector<TimelineEvent> Timeline::events() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<TimelineEvent> result(events_.begin(), events_.end());
  // An eager piece has no end of its own: it lasts until a piece begins again.
  double next_begin = open_end;
  for (auto it = result.rbegin(); it != result.rend(); ++it) {
    if (it->end_us == open_end) {
      it->end_us = next_begin == open_end ? result.back().begin_us : next_begin;
    }
    if (it->what != TimelineEvent::What::Hook) {
      next_begin = it->begin_us;
    }
  }
  return result;
}

void Timeline::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  events_.clear();
  last_backwards_.clear();
  start_ns_ = nanoseconds();
}

std::string Timeline::chromeTrace() const {
  nlohmann::json trace = nlohmann::json::array();
  std::vector<bool> named;
  for (const TimelineEvent& event : events()) {
    const size_t lane = static_cast<size_t>(event.piece + 1);
    if (lane >= named.size()) {
      named.resize(lane + 1, false);
    }
    if (!named[lane]) {
      named[lane] = true;
      trace.push_back({{"ph", "M"},
                       {"name", "thread_name"},
                       {"pid", 1},
                       {"tid", lane},
                       {"args", {{"name", lane == 0 ? "outside" : "piece" + std::to_string(event.piece)}}}});
    }
    nlohmann::json row = {{"name", event.name.empty() ? nameOf(event.what) : event.name},
                          {"cat", nameOf(event.what)},
                          {"pid", 1},
                          {"tid", lane},
                          {"ts", event.begin_us},
                          {"args", {{"seq", event.seq}, {"forward", event.forward}}}};
    if (event.what == TimelineEvent::What::Hook) {
      row["ph"] = "i";
      row["s"] = "t";
    } else {
      row["ph"] = "X";
      row["dur"] = event.end_us - event.begin_us;
    }
    trace.push_back(std::move(row));
  }
  return nlohmann::json{{"traceEvents", std::move(trace)}, {"displayTimeUnit", "ns"}}.dump();
}

}  // namespace faultline
