// Real worker processes that do real jobs, among them some that die of them.
#include "oracles/workers/pool.h"

#include <dirent.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "faultline/ir.h"
#include "tests/oracles/workers/planted_lanes.h"

namespace faultline {
namespace {

using std::chrono::milliseconds;

std::string caseText(uint64_t seed) {
  Case c;
  c.seed = seed;
  c.graph = readGraph(
                "graph(%x : Tensor, %y : Tensor):\n"
                "  %a : Tensor = aten::mul(%x, %y)\n"
                "  %b : Tensor = aten::tanh(%a)\n"
                "  return (%b)\n")
                .value();
  CaseRun run;
  run.inputs = {readInputSpec("float32[2,3]:grad").value(), readInputSpec("float32[2,3]:grad").value()};
  run.backwards = {BackwardSpec{}};
  c.runs = {run, run};
  return writeCase(c);
}

size_t openDescriptors() {
  size_t count = 0;
  DIR* dir = ::opendir("/proc/self/fd");
  while (dir != nullptr && ::readdir(dir) != nullptr) {
    ++count;
  }
  ::closedir(dir);
  return count;
}

class Pool : public testing::Test {
 protected:
  void SetUp() override {
    planted::registerLanes();
    options_.recorder_dir = testing::TempDir() + "/pool-" + std::to_string(::getpid());
    std::filesystem::create_directories(options_.recorder_dir);
    options_.command = {FAULTLINE_BINARY_DIR "/tests/planted_worker", "worker"};
  }
  void TearDown() override { std::filesystem::remove_all(options_.recorder_dir); }

  static Job job(uint64_t seed, const std::vector<std::string>& lanes) {
    Job made;
    made.text = caseText(seed);
    made.judge.lanes = lanes;
    made.timeout = 60;
    return made;
  }

  // The next outcome; fails the test after two minutes.
  static JobOutcome nextOf(JobRunner& runner) {
    const Clock::time_point deadline = Clock::now() + std::chrono::minutes(2);
    while (Clock::now() < deadline) {
      Result<std::optional<JobOutcome>> next = runner.next(milliseconds(500));
      if (!next) {
        ADD_FAILURE() << next.error().str();
        return {};
      }
      if (*next) {
        return std::move(**next);
      }
    }
    ADD_FAILURE() << "no outcome in two minutes";
    return {};
  }

  Death deathIn(const std::string& lane, uint64_t seed, double timeout = 60) {
    WorkerPool pool(options_);
    Job dying = job(seed, {lane});
    dying.timeout = timeout;
    pool.submit(dying);
    const JobOutcome outcome = nextOf(pool);
    EXPECT_TRUE(outcome.death) << lane;
    if (!outcome.death) {
      return {};
    }
    EXPECT_EQ(outcome.death->record.text, dying.text);
    EXPECT_EQ(outcome.death->record.lane, lane);
    // And the pool goes on.
    pool.submit(job(7, {lane}));
    const JobOutcome next = nextOf(pool);
    EXPECT_FALSE(next.death);
    EXPECT_EQ(next.report.results.size(), 1U);
    return *outcome.death;
  }

  RunnerOptions options_;
};

TEST_F(Pool, DoesJobsAndTellsTheirVerdicts) {
  options_.jobs = 2;
  WorkerPool pool(options_);
  EXPECT_EQ(pool.room(), 2U);
  std::set<uint64_t> ids;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    ids.insert(pool.submit(job(seed, {"planted.wrong"})));
  }
  EXPECT_EQ(pool.room(), 0U);
  for (int i = 0; i < 6; ++i) {
    const JobOutcome outcome = nextOf(pool);
    EXPECT_EQ(ids.erase(outcome.job.id), 1U);
    EXPECT_TRUE(outcome.report.error.empty()) << outcome.report.error;
    ASSERT_EQ(outcome.report.results.size(), 1U);
    const bool wrong = outcome.report.results[0].failed();
    const uint64_t seed = readCase(outcome.job.text)->seed;
    EXPECT_EQ(wrong, seed % 2 == 0);
    EXPECT_EQ(outcome.report.text.empty(), !wrong) << "the text comes with failures only";
  }
  EXPECT_FALSE(pool.next(milliseconds(10)).value()) << "nothing is left";
}

TEST_F(Pool, RepeatsAndReturnsTextsWhenAsked) {
  WorkerPool pool(options_);
  Job three = job(1, {"planted.wrong"});
  three.repeat = 3;
  three.want_text = true;
  pool.submit(three);
  const JobOutcome outcome = nextOf(pool);
  EXPECT_EQ(outcome.report.results.size(), 3U);
  EXPECT_EQ(outcome.report.text, three.text);
  Job none = job(1, {});
  none.repeat = 0;
  pool.submit(none);
  EXPECT_TRUE(nextOf(pool).report.results.empty());
}

TEST_F(Pool, SaysWhereATextIsNoCase) {
  WorkerPool pool(options_);
  Job broken = job(1, {});
  broken.text = "faultline case 1\nnonsense\n";
  pool.submit(broken);
  EXPECT_EQ(nextOf(pool).report.error.rfind("2:", 0), 0U);
}

TEST_F(Pool, NoticesASegfault) {
  const Death death = deathIn("planted.segfault", 0);
  EXPECT_EQ(death.kind, FailureKind::crash);
  EXPECT_EQ(death.detail.rfind("SIGSEGV", 0), 0U) << death.detail;
  EXPECT_FALSE(death.record.frames.empty());
}

TEST_F(Pool, NoticesAnAbort) {
  const Death death = deathIn("planted.abort", 1);
  EXPECT_EQ(death.kind, FailureKind::crash);
  EXPECT_EQ(death.detail.rfind("SIGABRT", 0), 0U) << death.detail;
}

TEST_F(Pool, NoticesALoop) {
  const Death death = deathIn("planted.loop", 2, 8);
  EXPECT_EQ(death.kind, FailureKind::timeout);
  EXPECT_EQ(death.detail, "");
}

TEST_F(Pool, NoticesThatMemoryRunsOut) {
  options_.rss_limit_mb = 1200;
  EXPECT_EQ(deathIn("planted.memory", 3).kind, FailureKind::oom);
}

TEST_F(Pool, NoticesAnExit) {
  const Death death = deathIn("planted.exit", 4);
  EXPECT_EQ(death.kind, FailureKind::crash);
  EXPECT_EQ(death.detail, "exit_3");
}

TEST_F(Pool, NoticesRubbish) {
  WorkerPool pool(options_);
  pool.submit(job(5, {"planted.rubbish"}));
  const JobOutcome outcome = nextOf(pool);
  ASSERT_TRUE(outcome.death);
  EXPECT_EQ(outcome.death->detail, "protocol");
}

// prim::Print and libraries write to stdout: that must not be read as an answer.
TEST_F(Pool, IsDeafToChatterOnStdout) {
  WorkerPool pool(options_);
  pool.submit(job(6, {"planted.chatter"}));
  const JobOutcome outcome = nextOf(pool);
  ASSERT_FALSE(outcome.death) << outcome.death->message;
  EXPECT_FALSE(outcome.report.results.at(0).judgements.empty());
}

TEST_F(Pool, RenewsWorkersAndGivesFreshOnesAProcessOfTheirOwn) {
  options_.renew_after = 2;
  WorkerPool pool(options_);
  // The moody lane is wrong the third time it runs in one process.
  for (int i = 0; i < 6; ++i) {
    pool.submit(job(1, {"planted.moody"}));
    EXPECT_FALSE(nextOf(pool).report.results.at(0).failed()) << i;
  }
  options_.renew_after = 1000;
  WorkerPool lasting(options_);
  int failed = 0;
  for (int i = 0; i < 6; ++i) {
    Job next = job(1, {"planted.moody"});
    next.fresh = i >= 4;
    lasting.submit(next);
    failed += nextOf(lasting).report.results.at(0).failed() ? 1 : 0;
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(Pool, GivesUpWhenNoWorkerStarts) {
  for (const std::string command : {"/nonexistent/worker", "/bin/false", "/bin/echo"}) {
    options_.command = {command};
    WorkerPool pool(options_);
    pool.submit(job(1, {}));
    Result<std::optional<JobOutcome>> next = std::nullopt;
    const Clock::time_point deadline = Clock::now() + std::chrono::minutes(1);
    while (next && Clock::now() < deadline) {
      next = pool.next(milliseconds(500));
    }
    ASSERT_FALSE(next) << command;
    EXPECT_EQ(next.error().kind, ErrorKind::Io);
    EXPECT_NE(next.error().str().find(command), std::string::npos) << next.error().str();
  }
}

TEST_F(Pool, GivesUpWhenTheRecorderCannotBeMade) {
  options_.recorder_dir = "/nonexistent";
  WorkerPool pool(options_);
  pool.submit(job(1, {}));
  EXPECT_EQ(pool.next(milliseconds(100)).error().kind, ErrorKind::Io);
}

TEST_F(Pool, LeavesNothingBehind) {
  const size_t before = openDescriptors();
  {
    options_.jobs = 2;
    WorkerPool pool(options_);
    pool.submit(job(0, {"planted.segfault"}));
    pool.submit(job(1, {"planted.segfault"}));
    pool.submit(job(2, {"planted.loop"}));  // still running at the end
    nextOf(pool);
    nextOf(pool);
  }
  EXPECT_EQ(openDescriptors(), before);
  EXPECT_TRUE(std::filesystem::is_empty(options_.recorder_dir));
}

TEST_F(Pool, InProcessGivesTheSameVerdicts) {
  options_.in_process = true;
  const std::unique_ptr<JobRunner> here = makeRunner(options_);
  options_.in_process = false;
  const std::unique_ptr<JobRunner> there = makeRunner(options_);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    here->submit(job(seed, {"planted.wrong"}));
    there->submit(job(seed, {"planted.wrong"}));
    JobReport a = nextOf(*here).report;
    JobReport b = nextOf(*there).report;
    for (JobReport* report : {&a, &b}) {
      for (CaseResult& result : report->results) {
        result.lane_seconds.clear();
      }
    }
    EXPECT_EQ(toLine(1, a), toLine(1, b));
  }
}

}  // namespace
}  // namespace faultline
