// fuzz, replay and check.
#include "tests/fuzz/cli/run_faultline.h"

#include "generators/case/case.h"

namespace faultline::test {
namespace {

using Json = nlohmann::json;

// A view of a product, written in place: run 1 of libtorch's profiling executor agrees with eager, run 2
// throws.
const char* const kViewOfProduct =
    "def f(x, y):\n"
    "    a = x * y\n"
    "    b = a.t()\n"
    "    b.add_(b)\n"
    "    return b * b\n";

Arguments checkViewOfProduct(Arguments more) {
  Arguments arguments = {"check",   writeScratch("view_of_product.py", kViewOfProduct),
                         "--input", "x=float32[3,4]:grad",
                         "--input", "y=float32[3,4]:grad"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void expectCampaignFields(const Json& json, const std::string& command) {
  EXPECT_EQ(json.at("schema"), "faultline." + command + "/1");
  for (const char* field : {"version", "torch", "seed", "cases", "passed", "failed", "skipped", "rate",
                            "shares", "oracles", "failures"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  for (const auto& [oracle, lanes] : json.at("oracles").items()) {
    for (const auto& [lane, tally] : lanes.items()) {
      for (const char* field : {"applicable", "passed", "skipped", "comparisons", "seconds"}) {
        EXPECT_TRUE(tally.contains(field)) << oracle << " " << lane << " " << field;
      }
    }
  }
  for (const Json& failure : json.at("failures")) {
    for (const char* field :
         {"signature", "oracle", "lane", "kind", "culprit", "count", "known", "case", "detail"}) {
      EXPECT_TRUE(failure.contains(field)) << field;
    }
  }
}

TEST(Fuzz, CleanEngineLanesExit0AndReportWhatWasCompared) {
  const Outcome& outcome =
      faultline({"fuzz", "--cases", "30", "--seed", "1", "--no-seeds", "-j", "1", "--json", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json json = outcome.json();
  expectCampaignFields(json, "fuzz");
  EXPECT_EQ(json.at("seed"), 1);
  EXPECT_EQ(json.at("cases"), 30);
  EXPECT_GT(json.at("oracles").at("forward_equiv").at("engine.broken").at("comparisons"), 0);
  // The human text, on stderr since stdout is JSON.
  EXPECT_EQ(outcome.err.rfind("seed 1, torch ", 0), 0u) << outcome.err;
  EXPECT_LE(widest(outcome.err), 80u) << outcome.err;
  EXPECT_NE(outcome.err.find("forward_equiv"), std::string::npos);
  EXPECT_EQ(outcome.err.find('\r'), std::string::npos) << "a progress line without a terminal";
}

TEST(Fuzz, PrintsTheRandomSeedBeforeAnythingElse) {
  const Outcome& outcome =
      faultline({"fuzz", "--cases", "1", "--no-seeds", "-j", "1", "--lane", "engine.broken"});
  EXPECT_THAT(outcome.out, testing::ContainsRegex("^seed [0-9]+, torch 2")) << outcome.err;
}

TEST(Fuzz, SaysFirstThatSeedsComeOnTop) {
  const Outcome& outcome = faultline({"fuzz", "--cases", "1", "--seed", "1", "-j", "1", "--lane",
                                      "engine.broken", "--oracle", "hook_order"});
  const std::string first = outcome.out.substr(0, outcome.out.find("\n"));
  EXPECT_THAT(first, testing::ContainsRegex("^seed 1, torch [^;]*; [0-9]+ cases? from corpus/seeds"));
}

TEST(Fuzz, ReachesEveryReasonForRefusingACut) {
  const Outcome& outcome = faultline({"fuzz", "--cases", "400", "--seed", "1", "--no-seeds", "-j", "1",
                                      "--lane", "engine.broken", "--oracle", "hook_order", "--json", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json shares = outcome.json().at("shares");
  for (const char* code : {
#define FAULTLINE_BREAK(code, sentence) #code,
#include "engine/graph_break/breaks.def"
#undef FAULTLINE_BREAK
       }) {
    EXPECT_GT(shares.at(std::string("refused:") + code).get<double>(), 0) << code;
  }
}

TEST(Fuzz, APluginThatRegistersNothingIsRefused) {
  expectUsageError(faultline({"fuzz", "--cases", "1", "--plugin", "libm.so.6"}),
                   "--plugin libm.so.6: registers no lane");
}

TEST(Fuzz, CtrlCLeavesASummaryAndExits130) {
  const Outcome outcome =
      startFaultline({"fuzz", "--no-seeds", "--seed", "3", "-j", "1", "--lane", "engine.broken"}, SIGINT);
  EXPECT_EQ(outcome.code, 130) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("interrupted by signal 2"), std::string::npos) << outcome.out;
}

TEST(Check, CtrlCIsSaidAndNotTakenForAProgramWithoutGradients) {
  const std::string model = writeScratch("goes_on.py",
                                         "def forward(x):\n"
                                         "    while bool(x.sum() == x.sum()):\n"
                                         "        x = x * 1\n"
                                         "    return x\n");
  const Outcome outcome = startFaultline({"check", model, "--input", "x=float32[2]", "-j", "1"}, SIGINT);
  EXPECT_EQ(outcome.code, 130) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("Interrupted by signal 2"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("No gradient was compared"), std::string::npos) << outcome.out;
}

TEST(Check, ReportsPerLaneAndOracleWhatWasCompared) {
  const Outcome& outcome = faultline({"check", "corpus/examples/mlp4.py", "--input", "x=float32[16,8]"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  for (const char* lane : {"engine.broken", "stock"}) {
    EXPECT_THAT(outcome.out,
                testing::ContainsRegex(std::string("forward_equiv +") + lane + " +passed +[0-9]+"));
  }
}

TEST(Check, AFailureEndsWithSignatureFileAndCommand) {
  const std::string out = scratchPath("checked");
  const Outcome& outcome = faultline(checkViewOfProduct(
      {"--lane", "stock", "--ignore-known", "--out", out, "--json", scratchPath("c.json")}));
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  const Json json = Json::parse(readWhole(scratchPath("c.json")), nullptr, false);
  expectCampaignFields(json, "check");
  ASSERT_FALSE(json.at("failures").empty());
  const std::vector<std::string> lines = linesOf(outcome.out);
  ASSERT_GE(lines.size(), 3u);
  const std::string signature = lines[lines.size() - 3], file = lines[lines.size() - 2],
                    command = lines.back();
  EXPECT_EQ(signature, json.at("failures").back().at("signature"));
  EXPECT_EQ(signature.rfind("run_equiv/stock/throws", 0), 0u) << outcome.out;
  EXPECT_TRUE(readCase(readWhole(file))) << file;
  EXPECT_EQ(command, "faultline replay " + file);
}

TEST(Check, WithoutOutTheFailingCaseIsSavedAllTheSame) {
  const Outcome& outcome =
      faultline(checkViewOfProduct({"--lane", "stock", "--oracle", "run_equiv", "--ignore-known"}));
  EXPECT_EQ(outcome.code, 1);
  const std::string command = linesOf(outcome.out).back();
  const std::string prefix = "faultline replay ";
  ASSERT_EQ(command.rfind(prefix, 0), 0u) << command;
  EXPECT_EQ(faultline({"replay", command.substr(prefix.size())}).code, 0) << command;
}

TEST(Check, AKnownIssueIsNamedAndIsNothingNew) {
  const Outcome& outcome = faultline(checkViewOfProduct({"--lane", "stock"}));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("\nview_of_product_written  stock      1  run_equiv/stock/"), std::string::npos)
      << outcome.out;
}

TEST(Check, TheHelpHasExitCodes) {
  for (const char* command : {"fuzz", "replay", "check"}) {
    EXPECT_NE(faultline({command, "--help"}).out.find("Exit code: 0 nothing new"), std::string::npos);
  }
}

TEST(Check, MissingArgumentsAreNamed) {
  const std::string model = writeScratch("view_of_product.py", kViewOfProduct);
  const Outcome& outcome = faultline({"check", model, "--input", "x=float32[3,4]"});
  expectUsageError(outcome, "y");
}

std::string caseExpecting(const std::string& expectation) {
  std::string text = faultline({"gen", "--seed", "1", "--index", "3"}).out;
  auto c = readCase(text);
  EXPECT_TRUE(c) << text;
  if (!c) return {};
  Expectation wanted;
  wanted.group = "engine";
  if (!expectation.empty()) wanted.signatures = {expectation};
  c->expectations = {wanted};
  return writeCase(*c);
}

TEST(Replay, AsExpectedExits0) {
  const std::string path = writeScratch("replay/good.case", caseExpecting(""));
  const Outcome& outcome = faultline({"replay", path, "--json", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  expectCampaignFields(outcome.json(), "replay");
  EXPECT_NE(outcome.err.find("1 as_expected"), std::string::npos) << outcome.err;
}

TEST(Replay, AFailureThatNoLongerFailsExits1AndSaysSo) {
  const std::string path = writeScratch("stale/stale.case", caseExpecting("forward_equiv/engine/value"));
  const Outcome& outcome = faultline({"replay", path});
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("\nstale: group engine, expected forward_equiv/engine/value, got pass\n"
                             "forward_equiv/engine/value\n" +
                             path + "\nfaultline replay " + path + " --lane engine\n"),
            std::string::npos)
      << outcome.out;
}

// However large it is, little of it is read.
TEST(Replay, WhatIsNoCaseExits2WithLineAndColumn) {
  const auto refused = [](const std::string& path, const std::string& where) {
    const Outcome outcome = startFaultline({"replay", path});
    EXPECT_EQ(outcome.code, 2) << path << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "");
    std::string said;
    for (const std::string& line : linesOf(outcome.err)) {
      // A path, and bytes that are quoted, are words that cannot be wrapped.
      const std::string words = line.substr(std::min(line.find_first_not_of(' '), line.size()));
      EXPECT_TRUE(widest(line) <= 80 || words.find(' ') == std::string::npos ||
                  line.find(path) != std::string::npos)
          << line;
      said += (said.empty() ? "" : " ") + words;
    }
    EXPECT_EQ(said.rfind("faultline replay: " + path + where, 0), 0u) << outcome.err;
    EXPECT_NE(said.find("could not be read: mend or remove it"), std::string::npos) << outcome.err;
    EXPECT_LT(outcome.err.size(), 500u) << "not the whole file";
  };
  refused(repositoryRoot() + "/README.md", ":3:1: expected 'faultline case 1'");
  refused(writeScratch("bad/empty.case", ""), ":1:1: expected 'faultline case 1'");
  const std::string whole = faultline({"gen", "--seed", "1", "--index", "3"}).out;
  refused(writeScratch("bad/cut.case", whole.substr(0, whole.rfind("return"))), ":");
  refused(repositoryRoot() + "/corpus/examples/mlp4.pt", ":1:1: expected 'faultline case 1'");
  refused("/bin/ls", ":1:1: expected 'faultline case 1'");
  const std::string sparse = writeScratch("bad/sparse.case", "faultline case 1\n");
  std::filesystem::resize_file(sparse, uintmax_t{1} << 40);
  refused(sparse, ":1:1: 1099511627776 bytes");
  std::filesystem::remove(sparse);
  refused("/dev/zero", ": not a regular file");
}

TEST(Replay, AFolderWithoutCasesExits3) {
  writeScratch("nothing/README.md", "no case\n");
  const Outcome& outcome = faultline({"replay", scratchPath("nothing")});
  EXPECT_EQ(outcome.code, 3) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace faultline::test
