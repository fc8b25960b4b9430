#include "oracles/workers/recorder.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace faultline {
namespace {

class Recorder : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(FlightRecorder::create(path_)); }
  void TearDown() override { std::filesystem::remove(path_); }
  FlightRecorder open() { return FlightRecorder::open(path_).value(); }
  FlightRecord read() { return readFlightRecord(path_).value(); }

  std::string path_ = testing::TempDir() + "/recorder-" + std::to_string(::getpid()) + ".fdr";
};

TEST_F(Recorder, IsEmptyBeforeAnythingHappens) {
  const FlightRecord record = read();
  EXPECT_EQ(record.stage, FlightStage::Idle);
  EXPECT_EQ(record.signal, 0);
  EXPECT_TRUE(record.text.empty());
}

TEST_F(Recorder, TellsTheTapeSoFarAndTheOpThatWasAboutToRun) {
  FlightRecorder recorder = open();
  recorder.beginGenerating(7);
  recorder.pendingOp("add", 0, {1, 2});
  recorder.pendingOp("cosh", 1, {1, 2, uint64_t{1} << 63});
  const FlightRecord record = read();
  EXPECT_EQ(record.stage, FlightStage::Generating);
  EXPECT_EQ(record.job, 7U);
  EXPECT_EQ(record.op, "cosh");
  EXPECT_EQ(record.op_ordinal, 1U);
  EXPECT_EQ(record.choices, (std::vector<uint64_t>{1, 2, uint64_t{1} << 63}));
}

TEST_F(Recorder, TellsTheCaseAndTheStep) {
  FlightRecorder recorder = open();
  recorder.beginJudging(8, "the case");
  EXPECT_EQ(read().lane, "");
  recorder.step("stock", 2, "backward0");
  const FlightRecord record = read();
  EXPECT_EQ(record.stage, FlightStage::Judging);
  EXPECT_EQ(record.job, 8U);
  EXPECT_EQ(record.text, "the case");
  EXPECT_EQ(record.lane, "stock");
  EXPECT_EQ(record.run, 2);
  EXPECT_EQ(record.phase, "backward0");
  recorder.idle();
  EXPECT_EQ(read().stage, FlightStage::Idle);
}

// Texts and tapes of all sizes in any order: each is read back whole, and the file does not grow without end.
TEST_F(Recorder, HoldsTextsOfChangingSizes) {
  FlightRecorder recorder = open();
  uint64_t largest = 0;
  for (uint64_t job = 1; job <= 200; ++job) {
    const size_t size = (job * 7919) % 400000;
    const std::string text(size, static_cast<char>('a' + job % 26));
    std::vector<uint64_t> tape;
    recorder.beginGenerating(job);
    for (uint64_t op = 0; op < job % 5; ++op) {
      tape.resize(tape.size() + 1000, job + op);
      recorder.pendingOp("op", op, tape);
      ASSERT_EQ(read().choices, tape) << job;
    }
    recorder.beginJudging(job, text);
    ASSERT_EQ(read().text, text) << job;
    ASSERT_EQ(read().job, job);
    largest = std::max<uint64_t>(largest, std::filesystem::file_size(path_));
  }
  EXPECT_LT(largest, 4U << 20);
}

TEST_F(Recorder, SaysWhenATextIsTooLarge) {
  FlightRecorder recorder = open();
  recorder.beginJudging(1, std::string(FlightRecorder::kMaxText + 1, 'x'));
  EXPECT_TRUE(read().text_cut);
  EXPECT_EQ(read().text, "");
  recorder.beginJudging(2, "small again");
  EXPECT_FALSE(read().text_cut);
  EXPECT_EQ(read().text, "small again");
}

TEST_F(Recorder, SaysWhenTheDiskIsFull) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200000, 200000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    FlightRecorder recorder = open();
    recorder.beginJudging(1, std::string(1000000, 'x'));
    recorder.step("lane", 0, "forward");
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(read().text_cut);
  EXPECT_EQ(read().lane, "lane");
}

// At whatever instant the writer is killed, the record is one that it wrote, not a mixture of two.
TEST_F(Recorder, IsWholeAtEveryInstant) {
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(FlightRecorder::create(path_));
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      FlightRecorder recorder = open();
      for (uint64_t i = 1;; ++i) {
        const std::string text(1000 + i % 5000, static_cast<char>('a' + i % 26));
        recorder.beginJudging(i, text);
        recorder.step("lane" + std::to_string(i), static_cast<int>(i % 1000), "phase" + std::to_string(i));
        if (i == 50) {
          static_cast<void>(::write(ready[1], "x", 1) == 1);
        }
      }
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::usleep(static_cast<useconds_t>(round * 137));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ready[0]);
    ::close(ready[1]);
    const FlightRecord record = read();
    ASSERT_EQ(record.stage, FlightStage::Judging);
    ASSERT_GE(record.job, 49U);
    ASSERT_EQ(record.text, std::string(1000 + record.job % 5000, static_cast<char>('a' + record.job % 26)));
    if (!record.lane.empty()) {
      ASSERT_EQ(record.lane, "lane" + std::to_string(record.job));
      ASSERT_EQ(record.phase, "phase" + std::to_string(record.job));
      ASSERT_EQ(record.run, static_cast<int>(record.job % 1000));
    }
  }
}

TEST_F(Recorder, RefusesOtherFiles) {
  std::ofstream(path_) << "faultline case 1\n";
  EXPECT_EQ(readFlightRecord(path_).error().kind, ErrorKind::Invalid);
  EXPECT_EQ(FlightRecorder::open(path_).error().kind, ErrorKind::Invalid);
  std::filesystem::remove(path_);
  EXPECT_FALSE(readFlightRecord(path_));
  EXPECT_EQ(FlightRecorder::create("/nonexistent/x.fdr").error().kind, ErrorKind::Io);
}

// A worker with a memory bug may write over its own recorder: whatever stands there, reading it is harmless.
TEST_F(Recorder, SurvivesAnyContent) {
  {
    FlightRecorder recorder = open();
    recorder.beginJudging(1, "text");
  }
  std::string bytes;
  {
    std::ifstream in(path_, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (size_t seed = 1; seed <= 64; ++seed) {
    std::string broken = bytes;
    uint64_t state = seed;
    for (size_t i = 16; i < 4096; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      broken[i] = static_cast<char>(state >> 56);
    }
    std::ofstream(path_, std::ios::binary) << broken;
    const FlightRecord record = read();
    EXPECT_LE(record.text.size(), bytes.size());
    EXPECT_LE(record.frames.size(), CrashNote::kFrames);
  }
}

}  // namespace
}  // namespace faultline
