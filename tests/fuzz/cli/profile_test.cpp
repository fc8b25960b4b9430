#include "tests/fuzz/cli/run_faultline.h"

#include <iterator>

#include "faultline/ir.h"

namespace faultline::test {
namespace {

using Json = nlohmann::json;

const std::string kFolder = std::string(FAULTLINE_TEST_DATA) + "/profile/";

std::vector<std::string> split(const std::string& text, char by) {
  std::istringstream stream(text);
  std::vector<std::string> parts;
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}

// "dtype=Float", "sizes=*,3" against the JSON fields of a use.
bool hasField(const Json& fields, const std::string& expected) {
  const size_t equals = expected.find('=');
  const std::string name = expected.substr(0, equals), value = expected.substr(equals + 1);
  if (!fields.contains(name)) return false;
  const Json& field = fields.at(name);
  if (name == "requires_grad") return field == (value == "1");
  if (name == "rank") return field == std::stoul(value);
  if (!field.is_array()) return field == value;
  std::vector<std::string> printed;
  for (const Json& element : field) printed.push_back(element.is_null() ? "*" : element.dump());
  return printed == split(value, ',');
}

// The answers of tests/data/profile/answers.tsv, one column each: file graph value user state has lacks
// conditional reason.
void expectAnswer(const Json& uses, const std::vector<std::string>& row) {
  bool found = false;
  for (const Json& use : uses) {
    if (use.at("graph") != row[1] || use.at("value") != row[2] || use.at("user") != row[3]) continue;
    found = true;
    EXPECT_EQ(use.at("state"), row[4]) << use;
    for (const std::string& field : split(row[5], ' ')) {
      if (field != "-") EXPECT_TRUE(hasField(use.at("fields"), field)) << field << " in " << use;
    }
    for (const std::string& field : split(row[6], ' ')) EXPECT_FALSE(use.at("fields").contains(field)) << use;
    if (row[7] != "-") EXPECT_EQ(use.at("conditional"), row[7] == "yes") << use;
    if (row[8] != "-") EXPECT_NE(use.at("why").dump().find(row[8]), std::string::npos) << use;
    EXPECT_EQ(use.at("type").is_null(), use.at("fields").empty()) << use;
  }
  EXPECT_TRUE(found) << row[1] << " " << row[2] << " " << row[3];
}

TEST(Profile, AnswersTheListedCases) {
  size_t asked = 0;
  for (const std::string& line : linesOf(readWhole(kFolder + "answers.tsv"))) {
    std::vector<std::string> row = split(line, '\t');
    ASSERT_EQ(row.size(), 9u) << line;
    const std::string number = row[0].substr(0, 2);
    if (number != "01" && number != "02" && number != "05" && number != "11") continue;
    const Outcome& outcome = faultline({"profile", kFolder + row[0], "--json", "-"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    SCOPED_TRACE(line);
    expectAnswer(outcome.json().at("uses"), row);
    ++asked;
  }
  EXPECT_GE(asked, 25u);
}

TEST(Profile, PrintsTheGraphWithAnswersThatCanBeReadAgain) {
  const std::string file = kFolder + "05-if-join.ir";
  const Outcome& outcome = faultline({"profile", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("# %r: Float(*, 3, strides=[3, 1], device=cpu)"), std::string::npos)
      << outcome.out;
  const std::string printed = outcome.out.substr(0, outcome.out.find("\n\n") + 1);
  const auto again = readGraph(printed), original = readGraph(readWhole(file));
  ASSERT_TRUE(again && original) << printed;
  EXPECT_TRUE(graphsEqual(**again, **original)) << describeGraphDifference(**again, **original);
}

TEST(Profile, ExplainsAUse) {
  const std::string file = kFolder + "05-if-join.ir";
  const Outcome& outcome = faultline({"profile", file, "--explain", "%r"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u);
  for (const char* expected : {"%r as input 0 of aten::relu, in main", "partial", "evidence: ", "%px", "%py",
                               "(join of both arms)", "requires_grad: varies"}) {
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << expected << " in " << outcome.out;
  }
  expectUsageError(faultline({"profile", file, "--explain", "%rr"}), "did you mean '%r'?");
}

TEST(Profile, ValidateExits1WithFindings) {
  const std::string file = kFolder + "01-request-example.ir";
  const Outcome& outcome = faultline({"profile", file, "--validate", "--json", "-"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const Json json = outcome.json();
  EXPECT_EQ(json.at("schema"), "faultline.profile/1");
  ASSERT_FALSE(json.at("findings").empty());
  for (const char* field : {"kind", "node", "value", "message"})
    EXPECT_TRUE(json.at("findings")[0].contains(field));

  const std::string clean =
      writeScratch("clean.ir", "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n");
  EXPECT_EQ(faultline({"profile", clean, "--validate"}).code, 0);
}

}  // namespace
}  // namespace faultline::test
