#include "tests/fuzz/cli/run_faultline.h"

#include <set>

namespace faultline::test {
namespace {

using Json = nlohmann::json;

Arguments mlp(Arguments more) {
  Arguments arguments = {"break", "corpus/examples/mlp4.py", "--input", "x=float32[16,8]"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const Arguments kCuts = {"--after", "linear", "--after", "relu_1"};

Arguments cut(Arguments more) {
  more.insert(more.begin(), kCuts.begin(), kCuts.end());
  return mlp(more);
}

uint64_t firstBackward(const Json& events, int piece) {
  for (const Json& event : events) {
    if (event.at("what") == "backward" && event.at("piece") == piece) return event.at("seq");
  }
  return UINT64_MAX;
}

// What the promise of section "Hooks" comes to, for the given pieces, in any run: empty when it is kept.
std::string brokenPromise(const Json& pieces, const Json& events) {
  for (size_t k = 0; k < pieces.size(); ++k) {
    for (const std::string parameter : pieces[k].at("parameters")) {
      size_t fired = 0;
      for (const Json& event : events) {
        if (event.at("what") != "hook" || event.at("parameter") != parameter) continue;
        ++fired;
        const uint64_t earlier = k == 0 ? UINT64_MAX : firstBackward(events, static_cast<int>(k) - 1);
        if (k > 0 && (earlier == UINT64_MAX || event.at("seq").get<uint64_t>() > earlier)) {
          return parameter + " fired after an earlier piece began";
        }
      }
      if (fired != 1) return parameter + " fired " + std::to_string(fired) + " times";
    }
  }
  return {};
}

TEST(Break, Mlp4FiresEightHooksBetweenThreePieces) {
  const Outcome& outcome = faultline(cut({"--exec", "--json", "-"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = outcome.json();
  EXPECT_EQ(json.at("schema"), "faultline.break/1");
  std::vector<std::vector<std::string>> ops;
  size_t parameters = 0;
  for (const Json& piece : json.at("pieces")) {
    ops.push_back(piece.at("ops"));
    parameters += piece.at("parameters").size();
    EXPECT_EQ(piece.at("kind"), "compiled");
    EXPECT_EQ(piece.at("reason"), "");
    EXPECT_GT(piece.at("bytes").get<int64_t>(), 0);
    for (const char* field : {"inputs", "outputs"}) EXPECT_FALSE(piece.at(field).empty()) << field;
  }
  EXPECT_EQ(ops, (std::vector<std::vector<std::string>>{
                     {"linear"}, {"relu", "linear_1", "relu_1"}, {"linear_2", "relu_2", "linear_3"}}));
  EXPECT_EQ(parameters, 8u);
  ASSERT_EQ(json.at("cuts").size(), 2u);
  EXPECT_EQ(json.at("cuts")[0].at("after"), "linear");
  EXPECT_TRUE(json.at("refused").empty());
  EXPECT_EQ(brokenPromise(json.at("pieces"), json.at("events")), "");
  EXPECT_EQ(json.at("run").at("hooked").size(), 8u);
  EXPECT_TRUE(json.at("run").at("good"));
  EXPECT_LE(json.at("run").at("difference").get<double>(), json.at("run").at("tolerance").get<double>());
  EXPECT_GT(json.at("run").at("compared"), 0);

  // The same assertion sees that a whole graph fires all hooks at its end.
  const Outcome& whole = faultline(mlp({"--policy", "none", "--exec", "--json", "-"}));
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_NE(brokenPromise(json.at("pieces"), whole.json().at("events")), "");
}

TEST(Break, PrintsPlanTablesAndRunIn80Columns) {
  const Outcome& outcome = faultline(cut({"--exec", "--timeline", scratchPath("trace.json")}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  for (const char* expected :
       {"Plan: 3 pieces, 2 cuts, 0 refused", "Original graph", "Piece 2: compiled", "Stitched graph",
        "opcode", "call_module", "Loss ", "tolerance", "8 fired once per gradient", "  1360    45%  "}) {
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << expected << " in " << outcome.out;
  }
  const Json trace = Json::parse(readWhole(scratchPath("trace.json")), nullptr, false);
  const Json& events = trace.is_array() ? trace : trace.at("traceEvents");
  EXPECT_GE(events.size(), 3u + 3u + 8u);
}

TEST(Break, APieceForcedToFailShowsAsEagerAndTheRestIsCompiled) {
  const Json json = faultline(cut({"--force-eager", "1", "--exec", "--json", "-"})).json();
  EXPECT_EQ(json.at("pieces")[0].at("kind"), "compiled");
  EXPECT_EQ(json.at("pieces")[1].at("kind"), "eager");
  EXPECT_NE(json.at("pieces")[1].at("reason"), "");
  EXPECT_TRUE(json.at("run").at("good"));
  EXPECT_EQ(brokenPromise(json.at("pieces"), json.at("events")), "");
}

TEST(Break, ADryRunCompilesNothing) {
  const Outcome& outcome = faultline(mlp({"--every", "2", "--dry-run"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("Plan: 4 pieces", 0), 0u) << outcome.out;
  EXPECT_EQ(outcome.out.find("Stitched"), std::string::npos);
}

TEST(Break, UnknownNamesPoliciesAndPiecesAreRefused) {
  expectUsageError(faultline(mlp({"--after", "rleu_1"})), "relu_1");
  expectUsageError(faultline(mlp({"--policy", "sometimes"})), "expected one of none, after:NAME");
  expectUsageError(faultline(mlp({"--policy", "every:0"})), "0");
  expectUsageError(faultline(mlp({"--force-eager", "7"})), "--force-eager 7");
  for (const char* policy : {"balanced:2", "balanced:2,time", "ddp:200,1000"}) {
    expectUsageError(faultline(mlp({"--inside", "--policy", policy})), "other policies cannot");
  }
  expectUsageError(faultline(mlp({"--inside", "--policy", "ddp", "--bucket-bytes", "9"})),
                   "other policies cannot");
}

TEST(Break, AProgramThatThrowsInEagerIsBadInput) {
  expectUsageError(faultline({"break", "corpus/examples/mlp4.py", "--input", "x=float32[16,9]", "--exec"}),
                   "throws in eager PyTorch");
  const std::string path = writeScratch("raises.py",
                                        "def forward(x):\n"
                                        "    if bool(x.sum() < 1e9):\n"
                                        "        raise ValueError('no good')\n"
                                        "    return x * 2\n");
  const std::string input = "x=float32[2]";
  expectUsageError(faultline({"break", path, "--input", input, "--exec"}),
                   "throws in eager PyTorch: ValueError: no good");
  expectUsageError(faultline({"break", path, "--input", input, "--policy", "balanced:2,time"}),
                   "an op throws: ValueError: no good");
  const Outcome& check = faultline({"check", path, "--input", input, "--lane", "engine", "-j", "1"});
  EXPECT_NE(check.out.find("run 1, forward: ValueError:"), std::string::npos) << check.out;
}

TEST(Break, DdpBucketsAndOtherCaps) {
  const Outcome& outcome = faultline(mlp({"--policy", "ddp", "--first-bucket-bytes", "200", "--bucket-bytes",
                                          "1000", "--what-if", "1,100000", "--dry-run", "--json", "-"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = outcome.json();
  ASSERT_EQ(json.at("buckets").size(), 4u);
  EXPECT_EQ(json.at("buckets")[0].at("parameters"), (Json{"b3", "w3"}));
  EXPECT_EQ(json.at("buckets")[1].at("parameters"), (Json{"b2", "w2"}));
  EXPECT_EQ(json.at("pieces").size(), 4u);
  ASSERT_EQ(json.at("what_if").size(), 2u);
  EXPECT_EQ(json.at("what_if")[0].at("buckets").size(), 7u);
  EXPECT_EQ(json.at("what_if")[1].at("buckets").size(), 2u);

  const Json compat =
      faultline(mlp({"--policy", "ddp:200,1000", "--compat", "ddpoptimizer", "--dry-run", "--json", "-"}))
          .json();
  EXPECT_EQ(compat.at("buckets")[0].at("parameters"), (Json{"w3", "b3"}));
  expectUsageError(faultline(mlp({"--bucket-bytes", "5"})), "--policy ddp");
  expectUsageError(faultline(mlp({"--what-if", "5"})), "--policy ddp");
}

TEST(Break, DrawsTheGraphAndTheTimeline) {
  const Outcome& outcome =
      faultline(cut({"--exec", "--dot", scratchPath("broken.dot"), "--svg", scratchPath("broken.svg"),
                     "--timeline-svg", scratchPath("time.svg")}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string dot = readWhole(scratchPath("broken.dot"));
  for (const char* expected : {"cluster_2", "piece 1", "relu_1", "digraph"}) {
    EXPECT_NE(dot.find(expected), std::string::npos) << expected;
  }
  EXPECT_NE(readWhole(scratchPath("broken.svg")).find("<svg"), std::string::npos);
  // Each hook stands to the right of the bar of its piece and to the left of the next that runs backward.
  const std::string svg = readWhole(scratchPath("time.svg"));
  auto placeOf = [&](const std::string& title) {
    const size_t at = svg.find("<title>" + title);
    EXPECT_NE(at, std::string::npos) << title;
    return at;
  };
  auto numberBefore = [&](size_t at, const std::string& attribute) {
    const size_t begin = svg.rfind(attribute + "=\"", at) + attribute.size() + 2;
    return std::stod(svg.substr(begin));
  };
  const double last_bar = numberBefore(placeOf("backward of piece 2"), " x");
  const double earlier_bar = numberBefore(placeOf("backward of piece 1"), " x");
  const size_t hook = placeOf("w3 at");
  const double tick = std::stod(svg.substr(svg.find("x1=\"", hook) + 4));
  EXPECT_LT(last_bar, tick);
  EXPECT_LT(tick, earlier_bar);
}

TEST(Break, BalancedByMeasuredTimes) {
  const Json json = faultline(mlp({"--policy", "balanced:3,time", "--exec", "--json", "-"})).json();
  EXPECT_EQ(json.at("pieces").size(), 3u);
  EXPECT_TRUE(json.at("run").at("good"));
}

TEST(Break, HooksComeAsThePlanPredicts) {
  const Json json = faultline(cut({"--exec", "--json", "-"})).json();
  ASSERT_EQ(json.at("hook_order").size(), 3u);
  int64_t before = 0;
  for (size_t i = 0; i < 3; ++i) {
    const Json& hooks = json.at("hook_order")[i];
    EXPECT_EQ(hooks.at("piece"), 2 - static_cast<int>(i));
    EXPECT_TRUE(hooks.at("as_predicted"));
    EXPECT_EQ(hooks.at("observed").size(), hooks.at("predicted").size());
    EXPECT_GT(hooks.at("bytes_ready"), before);
    before = hooks.at("bytes_ready");
  }
}

const char* kLoop =
    "# param w: float32[4,4]\n"
    "def forward(x, w):\n"
    "    h = x\n"
    "    for i in range(3):\n"
    "        h = torch.relu(h @ w)\n"
    "        h = h + x * i\n"
    "    return h.sum()\n";

Arguments loop(Arguments more) {
  Arguments arguments = {"break", writeScratch("loop.py", kLoop), "--input", "x=float32[4,4]"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Break, WhatGoesRoundALoopHasOneNameInAllTables) {
  const Outcome& outcome = faultline(loop({"--after", "relu"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* expected : {"(Loop.in0, w)", "(w, Loop.in0)", "(x, Loop.i)", "(x, Loop.i, piece0)"}) {
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << expected << " in " << outcome.out;
  }
}

TEST(Break, OpsOfAStitchedGraphKeepTheirNames) {
  const std::string path = writeScratch("arms.py",
                                        "def forward(x):\n"
                                        "    y = x.sin()\n"
                                        "    if bool(y.sum() > 0):\n"
                                        "        y = y.cos()\n"
                                        "    return y\n");
  const Outcome& outcome = faultline({"break", path, "--input", "x=float32[4]:grad", "--after", "sin"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("If_"), std::string::npos) << outcome.out;
}

TEST(Break, ACutAtTheEndOfABodyIsRefusedWithItsReason) {
  const Outcome& outcome = faultline(loop({"--after", "add", "--dry-run", "--json", "-"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;  // a refusal is no error
  const Json refused = outcome.json().at("refused");
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].at("at"), "add");
  EXPECT_EQ(refused[0].at("code"), "block_ends");
  EXPECT_NE(faultline({"break", "--help"}).out.find("Exit code: 0 also where a cut is refused"),
            std::string::npos);
}

TEST(Break, HelpAndErrorAgreeOnCutsInsideBlocks) {
  expectUsageError(faultline(loop({"--policy", "balanced:2", "--inside"})),
                   "with every, kinds and predicates; after and markers make them by themselves");
  EXPECT_NE(faultline({"break", "--help"}).out.find("--after and --policy"), std::string::npos);
}

TEST(Break, MeasuredTimesAreCalledSo) {
  const Outcome& outcome = faultline(mlp({"--policy", "balanced:3,time", "--dry-run"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("by measured time"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("weights given"), std::string::npos) << outcome.out;
}

TEST(Break, ASummaryHasNoTablesAndFoldsLists) {
  const Outcome& outcome = faultline({"break", "corpus/examples/transformer_block.py", "--input",
                                      "x=float32[2,6,16]", "--policy", "markers", "--exec", "--summary"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LE(widest(outcome.out), 80u) << outcome.out;
  EXPECT_LT(linesOf(outcome.out).size(), 60u) << outcome.out;
  for (const char* table : {"call_function", " us  forward"}) {
    EXPECT_EQ(outcome.out.find(table), std::string::npos) << outcome.out;
  }
  for (const char* expected : {" more …, ", "piece 1: 1 autograd node with ", "all equal within"}) {
    EXPECT_NE(outcome.out.find(expected), std::string::npos) << expected << " in " << outcome.out;
  }
}

TEST(Break, ASummaryOfVeryManyPiecesHasTheFirstAndTheLast) {
  std::string graph = "graph(%x : Tensor):\n  %v0 : Tensor = aten::sin(%x)\n";
  for (int i = 0; i < 100; ++i) {
    graph += "  %v" + std::to_string(i + 1) + " : Tensor = aten::sin(%v" + std::to_string(i) + ")\n";
  }
  const std::string path = writeScratch("many.ir", graph + "  return (%v100)\n");
  const Arguments all = {"break", path, "--input", "x=float32[3]:grad", "--every", "1", "--exec"};
  Arguments some = all;
  some.push_back("--summary");
  const Outcome& summary = faultline(some);
  ASSERT_EQ(summary.code, 0) << summary.err;
  EXPECT_LT(linesOf(summary.out).size(), 120u) << summary.out;
  for (const char* expected :
       {"Plan: 101 pieces", "  piece 0: sin\n", "  piece 100: sin_100\n", "… 92 more pieces", "--json FILE",
        "92 more pieces, all compiled", "92 more pieces, all as predicted"}) {
    EXPECT_NE(summary.out.find(expected), std::string::npos) << expected << " in " << summary.out;
  }
  EXPECT_EQ(summary.out.find("  piece 50"), std::string::npos) << summary.out;
  const Outcome& whole = faultline(all);
  for (const char* expected : {"  piece 50: sin_50\n", "  piece 50: predicted", "cut after sin_50:"}) {
    EXPECT_NE(whole.out.find(expected), std::string::npos) << expected;
  }
}

TEST(Break, NamesThatAreNearNothingAreAnsweredWithWhatThereIs) {
  expectUsageError(faultline(mlp({"--after", "nosuch"})),
                   "no op is named 'nosuch'; there are linear, relu, linear_1, relu_1, linear_2, relu_2 and "
                   "linear_3");
  expectUsageError(faultline(mlp({"--policy", "parameters:nosuch"})),
                   "no parameter is named 'nosuch'; there are ");
}

TEST(Break, ShowsTheBytesOfTheFirstRun) {
  const std::string path = writeScratch("two_runs.case", R"(faultline case 1
breaks: after mul
run: float32[2,3]:grad, float32[2,3]:grad
run: float32[4,3]:grad, @0

graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::relu(%a)
  return (%b)
)");
  const Outcome& outcome = faultline({"break", path, "--dry-run"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("parameters: x, y (48 bytes)\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("parameters: none\n"), std::string::npos) << outcome.out;
}

TEST(Break, WhatDrawsTheSvgMayTakeOnlySoLong) {
  const std::string dot = writeScratch("slow/dot", "#!/bin/sh\nexec sleep 100\n");
  std::filesystem::permissions(dot, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (std::filesystem::path(dot).parent_path().string() + ":" + path).c_str(), 1);
  const std::string json = scratchPath("slow.json"), timeline = scratchPath("slow.tl"),
                    timeline_svg = scratchPath("slow_tl.svg");
  const Outcome outcome =
      startFaultline(mlp({"--every", "2", "--exec", "--json", json, "--timeline", timeline, "--timeline-svg",
                          timeline_svg, "--svg", scratchPath("slow.svg"), "--case-timeout", "4s"}));
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.complaint().rfind("faultline break: --svg: Graphviz' dot did not end within 4 s", 0), 0u)
      << outcome.err;
  // Nothing else is lost.
  EXPECT_NE(outcome.out.find("8 fired once per gradient"), std::string::npos) << outcome.out;
  EXPECT_TRUE(Json::parse(readWhole(json), nullptr, false).contains("run"));
  EXPECT_NE(readWhole(timeline), "");
  EXPECT_NE(readWhole(timeline_svg).find("<svg"), std::string::npos);
}

TEST(Break, RefusalsOfOneKindAreFolded) {
  const Outcome& outcome = faultline({"break", "corpus/examples/transformer_block.py", "--input",
                                      "x=float32[2,6,16]", "--policy", "parameters", "--dry-run"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  size_t lines = 0;
  for (const std::string& line : linesOf(outcome.out)) lines += line.rfind("  refused", 0) == 0 ? 1 : 0;
  EXPECT_EQ(lines, 1u) << outcome.out;
  EXPECT_NE(outcome.out.find(" times (one_op), at "), std::string::npos) << outcome.out;
}

TEST(Break, AProgramThatDoesNotEndIsEnded) {
  const std::string path = writeScratch("endless.py",
                                        "def forward(x):\n"
                                        "    while bool(x.sum() == x.sum()):\n"
                                        "        x = x * 1\n"
                                        "    return x\n");
  expectUsageError(faultline({"break", path, "--input", "x=float32[2]", "--exec", "--case-timeout", "500ms"}),
                   "did not end within 0.5 s; --case-timeout");
}

TEST(Break, AnInfiniteLossEqualsItself) {
  const std::string path = writeScratch("infinite.py",
                                        "def forward(x):\n"
                                        "    return torch.relu(x) / 0.0\n");
  const Outcome outcome =
      faultline({"break", path, "--input", "x=float32[4]:positive", "--every", "1", "--exec"});
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_NE(outcome.out.find("Loss inf, eager inf"), std::string::npos) << outcome.out;
}

TEST(Break, ComparesInputsThatAreWritten) {
  const auto compared = [](const std::string& name, const std::string& write) {
    const std::string path =
        writeScratch(name, "def forward(x, y):\n    z = torch.relu(y)\n" + write + "    return z * 2.0\n");
    const Outcome outcome = faultline(
        {"break", path, "--input", "x=float32[5,5]", "--input", "y=float32[3]", "--every", "1", "--exec"});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    return outcome.out;
  };
  EXPECT_NE(compared("reads.py", "    z = z + x.sum()\n").find(" 3 numbers compared"), std::string::npos);
  EXPECT_NE(compared("writes.py", "    x.add_(1.0)\n").find(" 28 numbers compared"), std::string::npos);
}

TEST(Break, AWrongDtypeIsSaidBeforeWhatFollowsFromIt) {
  const std::string path = writeScratch("dtype.py",
                                        "# param w: flaot32[4,4]\n"
                                        "def forward(x):\n"
                                        "    return x @ w\n");
  expectUsageError(faultline({"break", path, "--input", "x=float32[4,4]"}), "expected a dtype");
}

TEST(Break, AnArchiveCutShortIsSaidToBe) {
  const std::string path =
      writeScratch("cut.pt", readWhole(repositoryRoot() + "/corpus/examples/mlp4.pt").substr(0, 2000));
  expectUsageError(faultline({"break", path, "--input", "x=float32[16,8]"}),
                   "cut short: save it again with torch.jit.save");
}

}  // namespace
}  // namespace faultline::test
