// Whole campaigns with real workers, planted lanes among theirs.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "generators/choices/choices.h"
#include "oracles/campaign/campaign.h"
#include "oracles/workers/system.h"
#include "tests/oracles/workers/planted_lanes.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

json readJson(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

// What must not depend on jobs, interruptions or the clock.
json withoutTimes(json summary) {
  for (const char* field : {"seconds", "rate", "state", "interrupted_by"}) {
    summary.erase(field);
  }
  for (auto& [oracle, lanes] : summary["oracles"].items()) {
    for (auto& [lane, tally] : lanes.items()) {
      tally.erase("seconds");
    }
  }
  for (json& failure : summary["failures"]) {
    failure.erase("case");
  }
  return summary;
}

class Fuzz : public testing::Test {
 protected:
  void SetUp() override {
    planted::registerLanes();
    fs::remove_all(path_);
    options_.worker_command = {FAULTLINE_BINARY_DIR "/tests/planted_worker", "worker"};
    options_.seed = 1;
    options_.cases = 24;
    options_.jobs = 2;
    options_.case_timeout = 120;
    options_.seeds_dir.clear();
    options_.out_dir = path_;
    options_.lanes = {"planted.wrong"};
  }
  void TearDown() override { fs::remove_all(path_); }

  CampaignSummary fuzz() {
    Result<CampaignSummary> summary = fuzzCampaign(options_);
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().str());
    return summary ? *summary : CampaignSummary{};
  }

  // Runs the campaign in a process of its own, and kills that as soon as `cases` are counted in its index.
  void killAfter(uint64_t cases) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(fuzzCampaign(options_) ? 0 : 1);
    }
    const Clock::time_point deadline = Clock::now() + std::chrono::minutes(3);
    for (;;) {
      ASSERT_LT(Clock::now(), deadline);
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "ended before it was killed";
      if (fs::exists(path_ + "/index.json") && readJson(path_ + "/index.json")["cases"] >= cases) {
        break;
      }
      ::usleep(2000);
    }
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }

  // Nothing half-written: every folder is whole, every counted failure is there, the index parses and adds
  // up.
  void expectConsistent() const {
    const json index = readJson(path_ + "/index.json");
    uint64_t skipped = 0;
    for (const auto& [reason, count] : index["skipped"].items()) {
      skipped += count.get<uint64_t>();
    }
    EXPECT_EQ(index["cases"].get<uint64_t>(), index["passed"].get<uint64_t>() +
                                                  index["failed"].get<uint64_t>() +
                                                  index["flaky"].get<uint64_t>() + skipped);
    EXPECT_EQ(index["cases"], index["state"]["next"]);
    for (const json& failure : index["failures"]) {
      EXPECT_TRUE(fs::exists(failure["case"].get<std::string>())) << failure["case"];
    }
    for (const auto& entry : fs::directory_iterator(path_)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && name != "inflight" && name != "flaky") {
        std::ifstream file(entry.path() / "case.case");
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        EXPECT_TRUE(readCase(text)) << name;
        EXPECT_TRUE(readJson((entry.path() / "info.json").string()).is_object()) << name;
      } else {
        EXPECT_TRUE(name == "inflight" || name == "flaky" || name == "index.json" || name == "stats.jsonl")
            << name;
      }
    }
  }

  FuzzOptions options_;
  std::string path_ = testing::TempDir() + "/fuzz-" + std::to_string(::getpid());
};

TEST_F(Fuzz, FindsSavesAndCounts) {
  const CampaignSummary summary = fuzz();
  EXPECT_EQ(summary.exitCode(), 1);
  EXPECT_EQ(summary.cases, 24U);
  EXPECT_GT(summary.passed, 0U);
  EXPECT_GT(summary.failed, 0U);
  ASSERT_FALSE(summary.failures.empty());
  const FailureGroup& first = summary.failures.front();
  EXPECT_EQ(first.signature, "forward_equiv/wrong/value");
  EXPECT_GT(first.count, 1U);
  EXPECT_EQ(first.case_path, path_ + "/forward_equiv-wrong-value/case.case");
  EXPECT_GT(summary.comparisons(), 0U);
  expectConsistent();
  EXPECT_EQ(withoutTimes(readJson(path_ + "/index.json")), withoutTimes(summary.toJson()));
  EXPECT_TRUE(fs::exists(path_ + "/stats.jsonl"));

  ReplayOptions replay;
  static_cast<CampaignOptions&>(replay) = options_;
  replay.lanes.clear();
  replay.paths = {path_};
  const CampaignSummary replayed = replayCampaign(replay).value();
  EXPECT_EQ(replayed.exitCode(), 0) << replayed.toJson().dump(1);
  EXPECT_EQ(replayed.cases, summary.failures.size());
}

TEST_F(Fuzz, DoesNotDependOnTheNumberOfWorkers) {
  options_.lanes = {"planted.wrong", "planted.segfault"};
  const CampaignSummary two = fuzz();
  fs::remove_all(path_);
  options_.jobs = 1;
  const CampaignSummary one = fuzz();
  EXPECT_EQ(withoutTimes(one.toJson()), withoutTimes(two.toJson()));
  EXPECT_GT(one.failures.size(), 1U);
}

// The five lanes that die and an operator that dies when the generator executes it: six saved cases, and it
// goes on.
TEST_F(Fuzz, SurvivesWhatKillsWorkers) {
  options_.worker_command = {FAULTLINE_BINARY_DIR "/tests/planted_worker", "--plant-op", "worker"};
  options_.lanes = {"planted"};
  options_.ops_added = {"cosh"};
  options_.cases = 60;
  options_.case_timeout = 8;
  options_.rss_limit_mb = 1200;
  const CampaignSummary summary = fuzz();
  EXPECT_EQ(summary.cases, 60U);
  EXPECT_EQ(summary.exitCode(), 1);
  EXPECT_GT(summary.passed, 0U);
  std::map<std::string, std::string> expected{
      {"execution/planted/crash/SIGSEGV", ""}, {"execution/planted/crash/SIGABRT", ""},
      {"execution/planted/timeout", ""},       {"execution/planted/oom", ""},
      {"execution/planted/crash/exit_3", ""},  {"execution/reference/crash/SIGSEGV", ""}};
  for (auto& [prefix, path] : expected) {
    for (const FailureGroup& group : summary.failures) {
      if (group.signature.rfind(prefix, 0) == 0) {
        path = group.case_path;
      }
    }
    EXPECT_TRUE(fs::exists(path)) << prefix;
  }
  EXPECT_EQ(summary.failures.size(), 6U) << summary.toJson()["failures"].dump(1);
  EXPECT_EQ(summary.flaky, 0U);
  expectConsistent();
  const fs::path generated = fs::path(expected["execution/reference/crash/SIGSEGV"]).parent_path();
  std::ifstream tape_file(generated / "case.tape");
  const Result<Tape> tape = readTape(std::string((std::istreambuf_iterator<char>(tape_file)), {}));
  ASSERT_TRUE(tape);
  EXPECT_THAT(tape->options, testing::Contains(testing::Pair("ops", "+cosh")))
      << "else it makes another case";
  std::ifstream file(generated / "case.case");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, HasSubstr("aten::cosh"));

  ReplayOptions replay;
  static_cast<CampaignOptions&>(replay) = options_;
  replay.lanes.clear();
  replay.paths = {path_};
  const CampaignSummary replayed = replayCampaign(replay).value();
  EXPECT_EQ(replayed.exitCode(), 0) << replayed.toJson()["outcomes"].dump(1);
  EXPECT_EQ(replayed.passed, 6U);
}

TEST_F(Fuzz, ResumesAfterBeingKilledTwice) {
  options_.cases = 40;
  killAfter(8);
  expectConsistent();
  options_.resume = true;
  killAfter(20);
  expectConsistent();
  const CampaignSummary resumed = fuzz();
  expectConsistent();
  fs::remove_all(path_);
  options_.resume = false;
  EXPECT_EQ(withoutTimes(resumed.toJson()), withoutTimes(fuzz().toJson()));
}

TEST_F(Fuzz, ResumesOnlyWhatItBegan) {
  options_.cases = 4;
  fuzz();
  EXPECT_EQ(fuzzCampaign(options_).error().kind, ErrorKind::Invalid) << "not empty";
  options_.resume = true;
  options_.cases = 6;
  options_.seed.reset();
  const CampaignSummary longer = fuzz();
  EXPECT_EQ(longer.cases, 6U);
  EXPECT_EQ(longer.seed, 1U);
  options_.seed = 2;
  EXPECT_THAT(fuzzCampaign(options_).error().message, HasSubstr("seed"));
  options_.seed = 1;
  options_.lanes = {"planted.moody"};
  EXPECT_THAT(fuzzCampaign(options_).error().message, HasSubstr("lanes"));
}

TEST_F(Fuzz, StopsOnASignalWithWhatItHas) {
  options_.cases.reset();
  options_.lanes = {"planted.chatter"};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(170);
    Result<CampaignSummary> summary = fuzzCampaign(options_);
    ::_exit(summary ? summary->exitCode() : 4);
  }
  const Clock::time_point deadline = Clock::now() + std::chrono::minutes(3);
  while (!fs::exists(path_ + "/index.json") || readJson(path_ + "/index.json")["cases"] < 3) {
    ASSERT_LT(Clock::now(), deadline);
    ::usleep(2000);
  }
  ::kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
  expectConsistent();
  EXPECT_EQ(readJson(path_ + "/index.json")["interrupted_by"], SIGTERM);
}

TEST_F(Fuzz, StopsAtTheFirstFailureWhenAsked) {
  options_.exit_first = true;
  const CampaignSummary summary = fuzz();
  EXPECT_EQ(summary.newFailures(), 1U);
  EXPECT_TRUE(summary.stopped_early);
  EXPECT_LT(summary.cases, 24U);
  EXPECT_EQ(summary.failures[0].count, 1U);
}

TEST_F(Fuzz, StopsAtTheTimeLimit) {
  options_.cases.reset();
  options_.seconds = 2;
  options_.lanes = {"planted.chatter"};
  const CampaignSummary summary = fuzz();
  EXPECT_GE(summary.seconds, 2);
  EXPECT_FALSE(summary.stopped_early);
}

TEST_F(Fuzz, PutsAsideWhatDoesNotRepeat) {
  options_.lanes = {"planted.moody"};
  options_.jobs = 1;
  options_.cases = 6;
  const CampaignSummary summary = fuzz();
  EXPECT_EQ(summary.flaky, 1U);
  EXPECT_EQ(summary.failures.size(), 0U);
  EXPECT_EQ(summary.exitCode(), 0);
  size_t folders = 0;
  for (const auto& entry : fs::directory_iterator(path_ + "/flaky")) {
    EXPECT_THAT(entry.path().filename().string(), StartsWith("forward_equiv-moody-"));
    EXPECT_TRUE(fs::exists(entry.path() / "case.case"));
    ++folders;
  }
  EXPECT_GE(folders, 1U);
}

TEST_F(Fuzz, JudgesSeedsFirst) {
  fuzz();
  options_.seeds_dir = path_ + "/forward_equiv-wrong-value";
  options_.out_dir = path_ + "-seeded";
  options_.cases = 2;
  const CampaignSummary summary = fuzz();
  EXPECT_EQ(summary.cases, 3U);
  EXPECT_EQ(summary.seeds, 1U);
  ASSERT_FALSE(summary.failures.empty());
  EXPECT_EQ(summary.failures[0].index, 0U);
  fs::remove_all(options_.out_dir);
}

TEST_F(Fuzz, SavesSomewhereWithoutOut) {
  options_.out_dir.clear();
  options_.exit_first = true;
  const CampaignSummary summary = fuzz();
  ASSERT_EQ(summary.failures.size(), 1U);
  const fs::path path = summary.failures[0].case_path;
  EXPECT_TRUE(fs::exists(path));
  fs::remove_all(path.parent_path().parent_path());
}

TEST_F(Fuzz, RefusesWhatDoesNotExist) {
  const auto refusal = [&](auto change) {
    FuzzOptions options = options_;
    change(options);
    const Result<CampaignSummary> summary = fuzzCampaign(options);
    EXPECT_FALSE(summary);
    return summary ? ErrorKind::Io : summary.error().kind;
  };
  EXPECT_EQ(refusal([](FuzzOptions& o) { o.lanes = {"nowhere"}; }), ErrorKind::Invalid);
  EXPECT_EQ(refusal([](FuzzOptions& o) { o.oracles = {"delphi"}; }), ErrorKind::Invalid);
  EXPECT_EQ(refusal([](FuzzOptions& o) { o.ops_added = {"no_op"}; }), ErrorKind::Invalid);
  EXPECT_EQ(refusal([](FuzzOptions& o) { o.ops_removed = {"no_op"}; }), ErrorKind::Invalid);
  EXPECT_EQ(refusal([](FuzzOptions& o) { o.features = {"+no_feature"}; }), ErrorKind::Invalid);
  EXPECT_EQ(refusal([](FuzzOptions& o) { o.case_timeout = 0; }), ErrorKind::Invalid);
  EXPECT_FALSE(fs::exists(path_)) << "nothing was begun";
}

TEST_F(Fuzz, FailsWhenNoWorkerCanBeStarted) {
  options_.worker_command = {"/nonexistent/worker"};
  EXPECT_EQ(fuzzCampaign(options_).error().kind, ErrorKind::Io);
}

// The disk is full from some moment on: no file can grow any more.
TEST_F(Fuzz, FailsWhenTheDiskIsFull) {
  options_.cases.reset();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(170);
    ::signal(SIGXFSZ, SIG_IGN);
    const Result<CampaignSummary> summary = fuzzCampaign(options_);
    ::_exit(summary ? 0 : summary.error().kind == ErrorKind::Io ? 4 : 2);
  }
  const Clock::time_point deadline = Clock::now() + std::chrono::minutes(3);
  while (!fs::exists(path_ + "/index.json") || readJson(path_ + "/index.json")["cases"] < 3) {
    ASSERT_LT(Clock::now(), deadline);
    ::usleep(2000);
  }
  const rlimit none{16, 16};
  ASSERT_EQ(::prlimit(child, RLIMIT_FSIZE, &none, nullptr), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 4);
  expectConsistent();
  EXPECT_GE(readJson(path_ + "/index.json")["cases"], 3);
}

TEST_F(Fuzz, InProcessFindsTheSame) {
  options_.cases = 8;
  const CampaignSummary workers = fuzz();
  fs::remove_all(path_);
  options_.in_process = true;
  EXPECT_EQ(withoutTimes(fuzz().toJson()), withoutTimes(workers.toJson()));
}

}  // namespace
}  // namespace faultline
