#include "tests/fuzz/cli/run_faultline.h"

#include <set>

#include "generators/ops/op_row.h"
#include "oracles/oracle.h"
#include "oracles/passes/stock_passes.h"

namespace faultline::test {
namespace {

TEST(List, OpsAreTheRowsOfTheTable) {
  const Outcome& outcome = faultline({"list", "ops", "--json", "-"});
  EXPECT_EQ(outcome.code, 0);
  std::vector<std::string> printed, rows;
  for (const auto& entry : outcome.json()) {
    printed.push_back(entry.at("name"));
    EXPECT_TRUE(entry.at("help").is_string());
    EXPECT_TRUE(entry.at("differentiable").is_boolean());
  }
  for (const OpRow& row : opRows()) rows.push_back(row.name);
  EXPECT_EQ(printed, rows);
}

TEST(List, IsReadableIn80Columns) {
  for (const char* what : {"oracles", "lanes", "kinds"}) {
    const Outcome& outcome = faultline({"list", what});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  }
  for (const OracleInfo& oracle : allOracles()) {
    EXPECT_NE(faultline({"list", "oracles"}).out.find(oracle.name), std::string::npos) << oracle.name;
  }
}

TEST(List, WithoutAWordSaysWhatEachHolds) {
  const Outcome& outcome = faultline({"list"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* what : {"ops", "policies", "where to break a graph"}) {
    EXPECT_NE(outcome.out.find(what), std::string::npos) << what;
  }
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
}

TEST(List, PoliciesShowTheirArguments) {
  const Outcome& outcome = faultline({"list", "policies"});
  EXPECT_NE(outcome.out.find("parameters[:NAME,…]"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("every:N"), std::string::npos) << outcome.out;
}

TEST(List, PassesAreLibtorchs) {
  const Outcome& outcome = faultline({"list", "passes", "--json", "-"});
  EXPECT_EQ(outcome.code, 0);
  std::set<std::string> names;
  for (const auto& entry : outcome.json()) names.insert(entry.at("name").get<std::string>());
  EXPECT_EQ(names.size(), stockPasses().size());
  EXPECT_EQ(names.count("CreateAutodiffSubgraphs"), 1u);
}

TEST(Doctor, SaysWhatIsThereAndHowToGetTheRest) {
  const Outcome& outcome = faultline({"doctor", "--json", "-"});
  EXPECT_EQ(outcome.code, 0);
  const auto json = outcome.json();
  EXPECT_EQ(json.at("schema"), "faultline.doctor/1");
  std::set<std::string> names;
  for (const auto& part : json.at("parts")) {
    names.insert(part.at("name"));
    const std::string get = part.at("get");
    EXPECT_EQ(part.at("found").get<bool>(), get.empty()) << part;
  }
  EXPECT_EQ(names, (std::set<std::string>{"torch", "cores", "cuda", "gloo", "libfuzzer"}));
  EXPECT_NE(outcome.err.find("torch      found"), std::string::npos)
      << "human text goes to stderr: " << outcome.err;
}

TEST(List, KnownIssuesShowTheirSignaturesWhole) {
  const Outcome& outcome = faultline({"list", "known"});
  EXPECT_EQ(outcome.out.find("…"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\nnumber_in_a_tensor_constant  forward_equiv/stock/dtype\n    a tensor"),
            std::string::npos)
      << outcome.out;
}

}  // namespace
}  // namespace faultline::test
