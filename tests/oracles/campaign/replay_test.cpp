// Replay and check with real workers; planted lanes give verdicts that are known beforehand.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "faultline/ir.h"
#include "oracles/campaign/campaign.h"
#include "oracles/campaign/setup.h"
#include "tests/oracles/workers/planted_lanes.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;
using Kind = ReplayOutcome::Kind;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kWrong = "forward_equiv/wrong/value";

class Replays : public testing::Test {
 protected:
  void SetUp() override {
    planted::registerLanes();
    fs::create_directories(path_);
    options_.worker_command = {FAULTLINE_BINARY_DIR "/tests/planted_worker", "worker"};
    options_.jobs = 1;
    options_.case_timeout = 120;
    options_.paths = {path_};
  }
  void TearDown() override { fs::remove_all(path_); }

  // Outputs of planted.wrong are wrong for even seeds.
  static Case caseOf(uint64_t seed) {
    Case c;
    c.seed = seed;
    c.graph = readGraph("graph(%x : Tensor):\n  %a : Tensor = aten::tanh(%x)\n  return (%a)\n").value();
    CaseRun run;
    run.inputs = {readInputSpec("float32[2,3]").value()};
    c.runs = {run};
    return c;
  }

  void put(const std::string& name, uint64_t seed, std::vector<Expectation> expectations) {
    Case c = caseOf(seed);
    c.expectations = std::move(expectations);
    std::ofstream(path_ + "/" + name) << writeCase(c);
  }
  static Expectation expect(const std::string& group, std::vector<std::string> signatures) {
    return {group, "", "", false, std::move(signatures)};
  }

  CampaignSummary replay() {
    Result<CampaignSummary> summary = replayCampaign(options_);
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().str());
    return summary ? *summary : CampaignSummary{};
  }
  ReplayOutcome only() {
    const CampaignSummary summary = replay();
    EXPECT_EQ(summary.outcomes.size(), 1U) << summary.toJson().dump(1);
    exit_code_ = summary.exitCode();
    return summary.outcomes.empty() ? ReplayOutcome{} : summary.outcomes[0];
  }

  ReplayOptions options_;
  int exit_code_ = -1;
  std::string path_ = testing::TempDir() + "/replay-" + std::to_string(::getpid());
};

TEST_F(Replays, WhatIsExpectedIsFine) {
  put("fails.case", 2, {expect("wrong", {kWrong})});
  put("passes.case", 1, {expect("wrong", {})});
  const CampaignSummary summary = replay();
  EXPECT_EQ(summary.exitCode(), 0) << summary.toJson()["outcomes"].dump(1);
  EXPECT_EQ(summary.cases, 2U);
  EXPECT_EQ(summary.passed, 2U);
  EXPECT_THAT(summary.lanes, ElementsAre("planted.wrong"));
  EXPECT_GT(summary.comparisons(), 0U);
}

TEST_F(Replays, FindsNewFailures) {
  put("a.case", 2, {expect("wrong", {})});
  const CampaignSummary summary = replay();
  EXPECT_EQ(summary.exitCode(), 1);
  ASSERT_EQ(summary.outcomes.size(), 1U);
  EXPECT_EQ(summary.outcomes[0].kind, Kind::New);
  EXPECT_THAT(summary.outcomes[0].got, ElementsAre(kWrong));
  ASSERT_EQ(summary.failures.size(), 1U);
  EXPECT_EQ(summary.failures[0].signature, kWrong);
  EXPECT_EQ(summary.failures[0].case_path, path_ + "/a.case");
}

TEST_F(Replays, FindsStaleExpectations) {
  put("a.case", 1, {expect("wrong", {kWrong})});
  EXPECT_EQ(only().kind, Kind::Stale);
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(Replays, FindsChangedVerdicts) {
  put("a.case", 2, {expect("wrong", {"forward_equiv/wrong/shape"})});
  const ReplayOutcome outcome = only();
  EXPECT_EQ(outcome.kind, Kind::Changed);
  EXPECT_THAT(outcome.expected, ElementsAre("forward_equiv/wrong/shape"));
  EXPECT_THAT(outcome.got, ElementsAre(kWrong));
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(Replays, DemandsTheWholeSet) {
  put("a.case", 2, {expect("wrong", {kWrong, "forward_equiv/wrong/shape"})});
  EXPECT_EQ(only().kind, Kind::Changed);
}

TEST_F(Replays, TellsDeaths) {
  put("a.case", 4, {expect("planted", {"execution/planted/crash/exit_3"})});
  EXPECT_EQ(only().kind, Kind::AsExpected);
  EXPECT_EQ(exit_code_, 0);
  put("a.case", 4, {expect("planted", {})});
  EXPECT_EQ(only().kind, Kind::New);
  put("a.case", 7, {expect("reference", {"execution/reference/crash/SIGSEGV"})});
  EXPECT_EQ(only().kind, Kind::Stale);
}

TEST_F(Replays, SkipsWhatIsSaidOfOtherVersions) {
  put("a.case", 1, {{"wrong", "1.13", "", false, {kWrong}}});
  const CampaignSummary summary = replay();
  EXPECT_EQ(summary.exitCode(), 0);
  EXPECT_EQ(summary.skipped.at("no_expectation_for_this_torch_or_lane"), 1U);
  put("a.case", 2, {{"wrong", torchRelease(), "", false, {kWrong}}, {"wrong", "1.13", "", false, {}}});
  EXPECT_EQ(only().kind, Kind::AsExpected);
}

TEST_F(Replays, JudgesOnlyTheLanesAskedFor) {
  put("a.case", 2, {expect("wrong", {kWrong}), expect("planted", {})});
  options_.lanes = {"planted.wrong"};
  const ReplayOutcome outcome = only();
  EXPECT_EQ(outcome.group, "wrong");
  EXPECT_EQ(outcome.kind, Kind::AsExpected);
}

TEST_F(Replays, ALaneMayBeNamedInsteadOfItsGroup) {
  put("a.case", 2, {expect("planted.wrong", {kWrong})});
  ReplayOutcome outcome = only();
  EXPECT_EQ(outcome.kind, Kind::AsExpected);
  EXPECT_EQ(outcome.group, "planted.wrong");
  put("a.case", 2, {expect("planted.wrong", {})});
  EXPECT_EQ(only().kind, Kind::New);
  EXPECT_EQ(exit_code_, 1);
  put("a.case", 1, {expect("planted.wrong", {kWrong})});
  EXPECT_EQ(only().kind, Kind::Stale);
  options_.lanes = {"planted.wrong"};
  put("a.case", 2, {expect("planted.wrong", {kWrong})});
  EXPECT_EQ(only().kind, Kind::AsExpected);
}

// Of the group `planted` only planted.exit misbehaves for the seed 4.
TEST_F(Replays, ALanesOwnExpectationGoesBeforeItsGroups) {
  put("a.case", 4, {expect("planted", {}), expect("planted.exit", {"execution/planted/crash/exit_3"})});
  const CampaignSummary summary = replay();
  EXPECT_EQ(summary.exitCode(), 0) << summary.toJson()["outcomes"].dump(1);
  ASSERT_EQ(summary.outcomes.size(), 2U);
  EXPECT_EQ(summary.outcomes[0].group, "planted");
  EXPECT_EQ(summary.outcomes[1].group, "planted.exit");
}

TEST_F(Replays, NoLaneOfThisNameIsNoPass) {
  put("a.case", 2, {expect("wrong", {kWrong}), expect("nowhere", {})});
  CampaignSummary summary = replay();
  EXPECT_EQ(summary.exitCode(), 0);
  ASSERT_EQ(summary.outcomes.size(), 2U);
  EXPECT_EQ(summary.outcomes[0].kind, Kind::Skipped);
  EXPECT_EQ(summary.outcomes[0].reason, "no_lane_of_this_name");
  put("a.case", 2, {expect("nowhere", {"forward_equiv/nowhere/value"})});
  EXPECT_EQ(only().kind, Kind::Changed) << "a failure on record must not get lost";
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(Replays, AnOpThatThisTorchLacksIsASkip) {
  put("a.case", 1, {expect("wrong", {})});
  std::string text = writeCase(caseOf(2));
  text.replace(text.find("aten::tanh"), 10, "aten::of_another_torch");
  std::ofstream(path_ + "/b.case") << text;
  const CampaignSummary summary = replay();
  EXPECT_EQ(summary.exitCode(), 0);
  EXPECT_EQ(summary.cases, 2U);
  EXPECT_EQ(summary.skipped.at("op_missing_in_torch_" + torchRelease()), 1U);
  EXPECT_THAT(summary.bad_inputs, IsEmpty());
  ASSERT_FALSE(summary.outcomes.empty());
  EXPECT_EQ(summary.outcomes[0].kind, Kind::Skipped);
  EXPECT_THAT(summary.outcomes[0].reason, testing::HasSubstr("aten::of_another_torch"));
}

// The failure is as expected, but what the case is there to show does not explain it.
TEST_F(Replays, AKnownIssueThatExplainsNothingIsStale) {
  Case c = caseOf(2);
  c.expectations = {expect("wrong", {kWrong})};
  c.known = {"view_of_product_written"};
  std::ofstream(path_ + "/a.case") << writeCase(c);
  const ReplayOutcome outcome = only();
  EXPECT_EQ(outcome.kind, Kind::Stale);
  EXPECT_THAT(outcome.reason, testing::HasSubstr("view_of_product_written"));
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(Replays, CasesWithoutExpectationsShouldPass) {
  put("a.case", 2, {});
  options_.lanes = {"planted.wrong"};
  EXPECT_EQ(only().kind, Kind::New);
  put("a.case", 1, {});
  EXPECT_EQ(only().kind, Kind::AsExpected);
}

TEST_F(Replays, ReadsWhatItCanAndTellsTheRest) {
  put("a.case", 1, {expect("wrong", {})});
  std::ofstream(path_ + "/b.case") << "# no case\n";
  std::ofstream(path_ + "/c.txt") << "x";
  const CampaignSummary summary = replay();
  EXPECT_EQ(summary.exitCode(), 2);
  EXPECT_EQ(summary.passed, 1U);
  EXPECT_EQ(summary.other_files, 1U);
  ASSERT_EQ(summary.bad_inputs.size(), 1U);
  EXPECT_EQ(summary.bad_inputs[0].file, path_ + "/b.case");
  EXPECT_TRUE(summary.bad_inputs[0].where);
}

TEST_F(Replays, NothingIsNothing) {
  const CampaignSummary summary = replay();
  EXPECT_EQ(summary.exitCode(), 3);
  EXPECT_EQ(summary.cases, 0U);
  EXPECT_THAT(summary.outcomes, IsEmpty());
}

TEST_F(Replays, CheckJudgesGivenCases) {
  CheckOptions options;
  static_cast<CampaignOptions&>(options) = options_;
  options.lanes = {"planted.wrong"};
  options.out_dir = path_ + "/out";
  options.cases = {{"even.pt", caseOf(2)}, {"odd.pt", caseOf(1)}};
  const CampaignSummary summary = checkCampaign(options).value();
  EXPECT_EQ(summary.command, "check");
  EXPECT_EQ(summary.exitCode(), 1);
  EXPECT_EQ(summary.cases, 2U);
  EXPECT_EQ(summary.failed, 1U);
  EXPECT_EQ(summary.passed, 1U);
  ASSERT_EQ(summary.failures.size(), 1U);
  EXPECT_EQ(summary.failures[0].signature, kWrong);
  EXPECT_TRUE(fs::exists(summary.failures[0].case_path));
}

// Seen from the other side: four equal verdicts are demanded, and the moody lane gives three and one.
TEST_F(Replays, FlakyIsNeitherNewNorFine) {
  put("a.case", 1, {expect("moody", {"forward_equiv/moody/shape"})});
  EXPECT_EQ(only().kind, Kind::Flaky);
  EXPECT_EQ(exit_code_, 0);
}

}  // namespace
}  // namespace faultline
