#include "tests/fuzz/cli/run_faultline.h"

#include <iterator>
#include <set>

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
    if (row[0] == "file") continue;
    const Outcome& outcome = faultline({"profile", kFolder + row[0], "--json", "-"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    SCOPED_TRACE(line);
    expectAnswer(outcome.json().at("uses"), row);
    ++asked;
  }
  EXPECT_GE(asked, 50u);
}

// tests/data/profile/findings: the first line of each graph says which kinds it has, once each.
TEST(Profile, FindsTheListedFindings) {
  size_t asked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "findings")) {
    const std::string file = entry.path().string();
    SCOPED_TRACE(file);
    std::set<std::string> expected, found;
    for (const std::string& word :
         split(linesOf(readWhole(file))[0].substr(std::strlen("# findings: ")), ' ')) {
      if (word != "-") expected.insert(word);
    }
    const Outcome outcome = faultline({"profile", file, "--validate", "--json", "-"});
    ASSERT_EQ(outcome.code, expected.empty() ? 0 : 1) << outcome.err;
    const Json json = outcome.json();
    for (const Json& finding : json.at("findings")) found.insert(finding.at("kind").get<std::string>());
    EXPECT_EQ(found, expected);
    ++asked;
  }
  EXPECT_EQ(asked, 14u);
  const Outcome counter =
      faultline({"profile", kFolder + "findings/f-counter.ir", "--about-to-run", "--json", "-"});
  const Json json = counter.json();
  ASSERT_EQ(json.at("findings").size(), 1u);
  EXPECT_EQ(json.at("findings")[0].at("kind"), "counter");
}

TEST(Profile, SaysWhatPruningSaves) {
  // x does not require grad: of mm and mul only the gradients of w and v are left.
  const std::string file = writeScratch("saves.ir", R"(graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %px : Tensor = prim::profile[profiled_type=Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)](%x)
  %pw : Tensor = prim::profile[profiled_type=Float(2, 2, strides=[2, 1], requires_grad=1, device=cpu)](%w)
  %m : Tensor = aten::mm(%px, %pw)
  %r : Tensor = aten::mul(%m, %v)
  return (%r)
)");
  const Outcome outcome = faultline({"profile", file, "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json savings = outcome.json().at("savings");
  EXPECT_EQ(savings.at("gradients"), 1);
  EXPECT_GT(savings.at("backward_nodes"), 0);
  EXPECT_EQ(savings.at("captured"), 1);  // w, which only x's gradient needed
  EXPECT_EQ(savings.at("captured_bytes"), 16);
  ASSERT_EQ(savings.at("unknown").size(), 1u);
  EXPECT_EQ(savings.at("unknown")[0].at("op"), "mul");
  EXPECT_NE(savings.at("unknown")[0].at("why"), "");
  const Outcome people = faultline({"profile", file});
  EXPECT_NE(people.out.find("leaves out 1 gradient"), std::string::npos) << people.out;
}

TEST(Profile, TableOfPasses) {
  const Outcome outcome = faultline({"profile", "--passes", "--cases", "4", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = outcome.json();
  ASSERT_GT(json.at("graphs"), 0);
  size_t effective = 0;
  for (const Json& row : json.at("passes")) effective += row.at("verdict") != "idle" ? 1 : 0;
  EXPECT_GE(effective, 5u) << json.dump(1);
  const Outcome file = faultline({"profile", "--passes", kFolder + "05-if-join.ir", "--json", "-"});
  ASSERT_EQ(file.code, 0) << file.err;
  EXPECT_EQ(file.json().at("graphs"), 1);
  expectUsageError(faultline({"profile"}), "FILE is missing");
}

// As the executor prints graphs: libtorch's passes throw on the counter at their end, unless it is out.
TEST(Profile, PassesDoNotSeeTheCounter) {
  const std::string with = readWhole(kFolder + "findings/f-counter.ir"), counter = "   = prim::profile()\n";
  ASSERT_NE(with.find(counter), std::string::npos);
  std::string without = with;
  without.erase(without.find(counter), counter.size());
  const auto verdicts = [](const std::string& name, const std::string& text) {
    const Outcome outcome = faultline({"profile", "--passes", writeScratch(name, text), "--json", "-"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::map<std::string, std::string> found;
    for (const Json& row : outcome.json().at("passes"))
      found[row.at("name")] =
          row.at("verdict").get<std::string>() + " " + row.at("example").get<std::string>();
    return found;
  };
  EXPECT_EQ(verdicts("counter.ir", with), verdicts("no_counter.ir", without));
}

TEST(Profile, TableOfPruning) {
  const Outcome outcome = faultline({"profile", "--pruning", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = outcome.json().at("pruning");
  ASSERT_GE(rows.size(), 6u);
  for (const Json& row : rows) EXPECT_GT(row.at("ours").at("pruned"), 0) << row.dump(1);
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

TEST(Profile, SaysHowToGetNodesWhereThereAreNone) {
  const std::string plain =
      writeScratch("plain.ir", "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n");
  for (const Arguments& arguments :
       {Arguments{"profile", plain}, Arguments{"profile", plain, "--explain", "%x"}}) {
    const Outcome outcome = faultline(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const char* expected : {"no prim::profile nodes", "withProfileNodes", "faultline/recorder.h"})
      EXPECT_NE(outcome.out.find(expected), std::string::npos) << expected << " in " << outcome.out;
  }
  EXPECT_EQ(faultline({"profile", plain, "--json", "-"}).json().at("profile_nodes"), 0);
  const Outcome other = faultline({"profile", kFolder + "05-if-join.ir"});
  EXPECT_EQ(other.out.find("no prim::profile nodes"), std::string::npos) << other.out;
}

}  // namespace
}  // namespace faultline::test
