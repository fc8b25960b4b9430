#include "oracles/campaign/summary.h"

#include <csignal>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace faultline {
namespace {

CampaignSummary clean() {
  CampaignSummary summary;
  summary.command = "fuzz";
  summary.torch = "2.15.0";
  summary.seed = 7;
  summary.lanes = {"engine.broken"};
  summary.cases = 10;
  summary.passed = 8;
  summary.skipped["reference_nondeterministic"] = 2;
  summary.traits = {{"view", 5}, {"op:aten::t", 4}};
  OracleLaneTally& tally = summary.oracles["forward_equiv"]["engine.broken"];
  tally.applicable = tally.passed = 8;
  tally.comparisons = 100;
  tally.seconds = 0.5;
  summary.oracles["break_equiv"]["engine.broken"].reasons["not_applicable"] = 8;
  summary.seconds = 2;
  return summary;
}

FailureGroup failure(const std::string& known) {
  FailureGroup group;
  group.signature = "run_equiv/stock/throws/view_of_leaf";
  group.oracle = "run_equiv";
  group.lane = "stock";
  group.kind = "throws";
  group.known = known;
  group.count = 3;
  group.case_path = "out/run_equiv-stock-throws-view_of_leaf/case.case";
  group.detail = "says \"no\"";
  return group;
}

TEST(ExitCode, IsZeroWithNothingNew) {
  EXPECT_EQ(clean().exitCode(), 0);
  CampaignSummary summary = clean();
  summary.failures.push_back(failure("view_of_leaf"));
  EXPECT_EQ(summary.exitCode(), 0);
  EXPECT_EQ(summary.newFailures(), 0U);
}

TEST(ExitCode, IsOneWithANewFailure) {
  CampaignSummary summary = clean();
  summary.failures.push_back(failure(""));
  EXPECT_EQ(summary.exitCode(), 1);
  summary.interrupted_by = SIGINT;
  EXPECT_EQ(summary.exitCode(), 1);
}

TEST(ExitCode, TellsTheSignal) {
  CampaignSummary summary = clean();
  summary.interrupted_by = SIGINT;
  EXPECT_EQ(summary.exitCode(), 130);
  summary.interrupted_by = SIGTERM;
  EXPECT_EQ(summary.exitCode(), 143);
}

TEST(ExitCode, IsThreeWhenNothingWasChecked) {
  CampaignSummary summary = clean();
  summary.oracles["forward_equiv"]["engine.broken"].comparisons = 0;
  EXPECT_EQ(summary.exitCode(), 3);
  summary.command = "replay";
  EXPECT_EQ(summary.exitCode(), 0) << "cases that are all skipped are cases";
  summary.cases = 0;
  EXPECT_EQ(summary.exitCode(), 3);
}

TEST(ExitCode, OfReplayCountsWhatIsNotAsExpected) {
  using Kind = ReplayOutcome::Kind;
  CampaignSummary summary = clean();
  summary.command = "replay";
  for (const auto& [kind, code] : std::map<Kind, int>{{Kind::AsExpected, 0},
                                                      {Kind::Flaky, 0},
                                                      {Kind::Skipped, 0},
                                                      {Kind::New, 1},
                                                      {Kind::Stale, 1},
                                                      {Kind::Changed, 1}}) {
    summary.outcomes = {ReplayOutcome{kind, "a.case", "stock", "", {}, {}, {}}};
    EXPECT_EQ(summary.exitCode(), code) << toString(kind);
  }
  summary.bad_inputs.push_back(
      Error{ErrorKind::Syntax, "expected a case", "README.md", SourceLocation{1, 1}});
  EXPECT_EQ(summary.exitCode(), 2);
}

TEST(Summary, HasTheFieldsThatArePromised) {
  CampaignSummary summary = clean();
  summary.failures = {failure(""), failure("view_of_leaf")};
  const nlohmann::json json = summary.toJson();
  EXPECT_EQ(json["schema"], "faultline.fuzz/1");
  EXPECT_FALSE(json["version"].get<std::string>().empty());
  EXPECT_EQ(json["torch"], "2.15.0");
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["cases"], 10);
  EXPECT_EQ(json["passed"], 8);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(json["skipped"], (nlohmann::json{{"reference_nondeterministic", 2}}));
  EXPECT_EQ(json["rate"], 5.0);
  EXPECT_EQ(json["shares"]["valid"], 0.8);
  EXPECT_EQ(json["shares"]["view"], 0.5);
  for (const char* share : {"differentiable", "control_flow", "mutation", "subgraph", "flips"}) {
    EXPECT_EQ(json["shares"][share], 0.0) << share;
  }
  EXPECT_FALSE(json["shares"].contains("op:aten::t"));
  const nlohmann::json& pair = json["oracles"]["forward_equiv"]["engine.broken"];
  EXPECT_EQ(pair["applicable"], 8);
  EXPECT_EQ(pair["passed"], 8);
  EXPECT_EQ(pair["skipped"], 0);
  EXPECT_EQ(pair["comparisons"], 100);
  EXPECT_EQ(pair["seconds"], 0.5);
  const nlohmann::json& first = json["failures"][0];
  for (const char* field : {"signature", "oracle", "lane", "kind", "count", "case", "detail"}) {
    EXPECT_TRUE(first.contains(field)) << field;
  }
  EXPECT_TRUE(first["culprit"].is_null());
  EXPECT_TRUE(first["known"].is_null());
  EXPECT_EQ(json["failures"][1]["known"], "view_of_leaf");
}

TEST(Summary, IsReadBack) {
  CampaignSummary summary = clean();
  summary.failures = {failure(""), failure("view_of_leaf")};
  EXPECT_EQ(readSummary(summary.toJson())->toJson(), summary.toJson());
}

TEST(Summary, RefusesOtherJson) {
  EXPECT_FALSE(readSummary(nlohmann::json::object()));
  EXPECT_FALSE(readSummary(nlohmann::json::array()));
  nlohmann::json json = clean().toJson();
  json["schema"] = "faultline.break/1";
  EXPECT_FALSE(readSummary(json));
  json = clean().toJson();
  json["cases"] = "many";
  EXPECT_FALSE(readSummary(json));
}

}  // namespace
}  // namespace faultline
