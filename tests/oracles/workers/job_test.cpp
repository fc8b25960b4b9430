#include "oracles/workers/job.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace faultline {
namespace {

Result<Job> jobThroughLine(const Job& job) { return jobFromJson(nlohmann::json::parse(toLine(job))); }

TEST(Job, TravelsWithItsCase) {
  Job job;
  job.id = 12;
  job.text = "faultline case 1\n# \xff\x80 umlaut \xc3\xa4 and a \"quote\"\n";
  job.judge.lanes = {"engine.broken", "stock"};
  job.judge.oracles = {"run_equiv"};
  job.judge.oracle.strict = true;
  job.repeat = 3;
  job.want_text = true;
  const std::string line = toLine(job);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Job back = jobThroughLine(job).value();
  EXPECT_EQ(back.id, 12U);
  EXPECT_EQ(back.text, job.text);
  EXPECT_EQ(back.judge.lanes, job.judge.lanes);
  EXPECT_EQ(back.judge.oracles, job.judge.oracles);
  EXPECT_TRUE(back.judge.oracle.strict);
  EXPECT_EQ(back.repeat, 3U);
  EXPECT_TRUE(back.want_text);
  EXPECT_FALSE(back.generate);
}

TEST(Job, TravelsWithItsGenerator) {
  Job job;
  job.generate.emplace();
  job.generate->seed = ~uint64_t{0};
  job.generate->index = 5;
  job.generate->options.ops_added = {"t"};
  job.generate->options.ops_removed = {"mm"};
  job.generate->options.features = {"+views"};
  job.generate->options.max_nodes = 9;
  job.generate->stop_before_op = 0;
  const Job back = jobThroughLine(job).value();
  ASSERT_TRUE(back.generate);
  EXPECT_EQ(back.generate->seed, ~uint64_t{0});
  EXPECT_EQ(back.generate->index, 5U);
  EXPECT_EQ(back.generate->options.ops_added, job.generate->options.ops_added);
  EXPECT_EQ(back.generate->options.ops_removed, job.generate->options.ops_removed);
  EXPECT_EQ(back.generate->options.features, job.generate->options.features);
  EXPECT_EQ(back.generate->options.max_nodes, 9U);
  EXPECT_EQ(back.generate->stop_before_op, 0U);
}

TEST(JobReport, TravelsWithItsVerdicts) {
  JobReport report;
  report.text = "text \xfe";
  report.traits = {"view", "op:aten::t"};
  CaseResult result;
  result.judgements.push_back({"forward_equiv", "stock", "stock", Verdict::pass(5, 2), ""});
  result.judgements.push_back({"run_equiv", "stock", "stock", Verdict::skip("not_applicable"), ""});
  Verdict failure = Verdict::failure(FailureKind::throws, "view_of_leaf", "says \xff", 3);
  result.judgements.push_back(
      {"run_equiv", "engine.broken", "engine", failure, "run_equiv/engine/throws/view_of_leaf"});
  result.lane_seconds = {{"stock", 0.5}};
  report.results = {result, CaseResult{"reference_throws", "what it threw", {}, {}, {}}};
  const JobReport back = reportFromJson(nlohmann::json::parse(toLine(3, report))).value();
  EXPECT_EQ(back.text, report.text);
  EXPECT_EQ(back.traits, report.traits);
  ASSERT_EQ(back.results.size(), 2U);
  EXPECT_EQ(back.results[1].skip, "reference_throws");
  EXPECT_EQ(back.results[1].reference_error, "what it threw");
  EXPECT_EQ(back.results[0].lane_seconds, result.lane_seconds);
  ASSERT_EQ(back.results[0].judgements.size(), 3U);
  const Verdict& passed = back.results[0].judgements[0].verdict;
  EXPECT_TRUE(passed.passed());
  EXPECT_EQ(passed.comparisons(), 5U);
  EXPECT_EQ(passed.rounding(), 2U);
  EXPECT_EQ(back.results[0].judgements[1].verdict.reason(), "not_applicable");
  const Judgement& failed = back.results[0].judgements[2];
  EXPECT_EQ(failed.verdict.kind(), FailureKind::throws);
  EXPECT_EQ(failed.verdict.detail(), "view_of_leaf");
  EXPECT_EQ(failed.verdict.comparisons(), 3U);
  EXPECT_EQ(failed.group, "engine");
  EXPECT_EQ(failed.signature, "run_equiv/engine/throws/view_of_leaf");
}

TEST(Job, RefusesWhatIsNone) {
  for (const char* text :
       {"1", "null", "[]", "{}", R"({"id": "x"})", R"({"id": 1, "lanes": 3})",
        R"({"id":1,"lanes":[],"oracles":[],"strict":false,"confirm":true,"repeat":1,"want_text":false})"}) {
    EXPECT_FALSE(jobFromJson(nlohmann::json::parse(text))) << text;
  }
  for (
      const char* text :
      {"1", "{}", R"({"results": 1, "traits": []})", R"({"results": [{}], "traits": []})",
       R"({"traits":[],"results":[{"judgements":[{"oracle":"o","lane":"l","group":"g","pass":0}],"seconds":[]}]})",
       R"({"traits":[],"results":[{"judgements":[{"oracle":"o","lane":"l","group":"g","fail":"no_such","detail":"","message":"","comparisons":1,"signature":"s"}],"seconds":[]}]})"}) {
    EXPECT_FALSE(reportFromJson(nlohmann::json::parse(text))) << text;
  }
  EXPECT_FALSE(jobFromJson(nlohmann::json::parse("no json", nullptr, false)));
}

}  // namespace
}  // namespace faultline
