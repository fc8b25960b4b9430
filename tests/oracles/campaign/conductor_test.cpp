#include "oracles/campaign/conductor.h"

#include <csignal>
#include <deque>

#include <gtest/gtest.h>

#include "oracles/campaign/interrupts.h"

namespace faultline {
namespace {

using std::chrono::milliseconds;

// Ends the jobs it holds in reverse order.
class Backwards : public JobRunner {
 public:
  explicit Backwards(size_t jobs) : jobs_(jobs) {}
  uint64_t submit(Job job) override {
    job.id = ++last_id_;
    held_.push_back(std::move(job));
    return last_id_;
  }
  size_t room() const override { return jobs_ > held_.size() ? jobs_ - held_.size() : 0; }
  Result<std::optional<JobOutcome>> next(milliseconds) override {
    if (broken) {
      return fail(ErrorKind::Io, "broken");
    }
    if (held_.empty() || (hang_on && held_.back().text == *hang_on)) {
      return std::nullopt;
    }
    JobOutcome outcome;
    outcome.job = std::move(held_.back());
    held_.pop_back();
    return outcome;
  }
  bool broken = false;
  std::optional<std::string> hang_on;

 private:
  size_t jobs_;
  uint64_t last_id_ = 0;
  std::deque<Job> held_;
};

Conductor::Source count(uint64_t end) {
  return [end](uint64_t position) -> std::optional<Job> {
    if (position >= end) {
      return std::nullopt;
    }
    Job job;
    job.text = std::to_string(position);
    return job;
  };
}

TEST(Conductor, CommitsInOrderWhateverOrderJobsEndIn) {
  Backwards runner(7);
  Conductor conductor(runner, nullptr, std::nullopt);
  std::vector<uint64_t> positions;
  ASSERT_TRUE(conductor.run(3, count(40),
                            [&](uint64_t position, const JobOutcome& outcome) -> Result<Conductor::Then> {
                              EXPECT_EQ(outcome.job.text, std::to_string(position));
                              positions.push_back(position);
                              return Conductor::Then::GoOn;
                            }));
  ASSERT_EQ(positions.size(), 37U);
  for (uint64_t i = 0; i < positions.size(); ++i) {
    EXPECT_EQ(positions[i], i + 3);
  }
}

TEST(Conductor, StopsWhenToldTo) {
  Backwards runner(7);
  Conductor conductor(runner, nullptr, std::nullopt);
  uint64_t last = 0;
  ASSERT_TRUE(
      conductor.run(0, count(40), [&](uint64_t position, const JobOutcome&) -> Result<Conductor::Then> {
        last = position;
        return position == 5 ? Conductor::Then::Stop : Conductor::Then::GoOn;
      }));
  EXPECT_EQ(last, 5U);
}

TEST(Conductor, AwaitsAJobInBetween) {
  Backwards runner(3);
  Conductor conductor(runner, nullptr, std::nullopt);
  std::vector<std::string> seen;
  ASSERT_TRUE(
      conductor.run(0, count(6), [&](uint64_t position, const JobOutcome&) -> Result<Conductor::Then> {
        if (position == 2) {
          Job extra;
          extra.text = "extra";
          seen.push_back(conductor.await(extra).value()->job.text);
        }
        seen.push_back(std::to_string(position));
        return Conductor::Then::GoOn;
      }));
  EXPECT_EQ(seen, (std::vector<std::string>{"0", "1", "extra", "2", "3", "4", "5"}));
}

TEST(Conductor, BeginsNothingAfterTheTimeLimit) {
  Backwards runner(3);
  Conductor conductor(runner, nullptr, Clock::now() - milliseconds(1));
  ASSERT_TRUE(conductor.run(0, count(10), [](uint64_t, const JobOutcome&) -> Result<Conductor::Then> {
    ADD_FAILURE();
    return Conductor::Then::GoOn;
  }));
}

TEST(Conductor, DropsWhatHangsBehindTheTimeLimit) {
  Backwards runner(1);
  runner.hang_on = "4";
  Conductor conductor(runner, nullptr, Clock::now() + milliseconds(50));
  std::vector<uint64_t> positions;
  ASSERT_TRUE(
      conductor.run(0, count(10), [&](uint64_t position, const JobOutcome&) -> Result<Conductor::Then> {
        positions.push_back(position);
        return Conductor::Then::GoOn;
      }));
  EXPECT_EQ(positions, (std::vector<uint64_t>{0, 1, 2, 3}));
}

TEST(Conductor, EndsOnASignal) {
  const Interrupts interrupts;
  Backwards runner(2);
  Conductor conductor(runner, nullptr, std::nullopt);
  uint64_t committed = 0;
  ASSERT_TRUE(
      conductor.run(0, count(1000000), [&](uint64_t position, const JobOutcome&) -> Result<Conductor::Then> {
        if (position == 3) {
          ::raise(SIGINT);
          EXPECT_FALSE(conductor.await(Job{}).value());
        }
        ++committed;
        return Conductor::Then::GoOn;
      }));
  EXPECT_EQ(committed, 4U);
  EXPECT_EQ(Interrupts::caught(), SIGINT);
}

TEST(Conductor, PassesErrorsOn) {
  Backwards runner(2);
  runner.broken = true;
  Conductor conductor(runner, nullptr, std::nullopt);
  const auto never = [](uint64_t, const JobOutcome&) -> Result<Conductor::Then> {
    return Conductor::Then::GoOn;
  };
  EXPECT_EQ(conductor.run(0, count(3), never).error().message, "broken");
  Backwards whole(2);
  const auto refuses = [](uint64_t, const JobOutcome&) -> Result<Conductor::Then> {
    return fail(ErrorKind::Io, "disk full");
  };
  Conductor other(whole, nullptr, std::nullopt);
  EXPECT_EQ(other.run(0, count(3), refuses).error().message, "disk full");
}

TEST(Conductor, TicksWhileItWaits) {
  Backwards runner(1);
  runner.hang_on = "0";
  int ticks = 0;
  Conductor conductor(
      runner, [&] { ++ticks; }, Clock::now() + milliseconds(600));
  ASSERT_TRUE(conductor.run(0, count(1), [](uint64_t, const JobOutcome&) -> Result<Conductor::Then> {
    return Conductor::Then::GoOn;
  }));
  EXPECT_GE(ticks, 2);
}

}  // namespace
}  // namespace faultline
