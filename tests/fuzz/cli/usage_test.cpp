// What is wrong with a command line or a file is said in one sentence, with exit code 2.
#include "tests/fuzz/cli/run_faultline.h"

namespace faultline::test {
namespace {

const std::vector<std::string>& commands() {
  static const std::vector<std::string> words = {"fuzz", "replay", "check", "break", "profile",
                                                 "gen",  "show",   "list",  "doctor"};
  return words;
}

TEST(Help, ListsEveryCommandAndFitsInto80Columns) {
  const Outcome& help = faultline({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_LE(widest(help.out), 80u) << help.out;
  for (const std::string& command : commands())
    EXPECT_NE(help.out.find("\n  " + command + " "), std::string::npos);
  EXPECT_EQ(help.out.find("worker"), std::string::npos) << "a hidden command";
  EXPECT_NE(help.out.find("\nExample:\n  faultline "), std::string::npos);
}

TEST(Help, OfEachCommandHasAnExampleAndFitsInto80Columns) {
  for (const std::string& command : commands()) {
    const Outcome& help = faultline({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_LE(widest(help.out), 80u) << help.out;
    EXPECT_EQ(help.out.rfind("Usage: faultline " + command, 0), 0u) << help.out;
    EXPECT_NE(help.out.find("\nExample:\n  faultline " + command), std::string::npos) << help.out;
  }
}

TEST(Help, VersionNamesTorch) {
  const Outcome& version = faultline({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("faultline [0-9.]+ \\(torch 2\\.[0-9]+\\.[0-9]+\\)\n"));
}

TEST(Usage, WithoutACommandTheHelpGoesToStderr) {
  const Outcome& outcome = faultline({});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("Commands:"), std::string::npos);
}

TEST(Usage, UnknownWordsNameTheNearest) {
  expectUsageError(faultline({"fuz"}), "unknown command 'fuz' (did you mean 'fuzz'?)");
  expectUsageError(faultline({"fuzz", "--sed", "1"}), "unknown flag '--sed' (did you mean '--seed'?)");
  expectUsageError(faultline({"fuzz", "--oracle", "foward_equiv"}), "did you mean 'forward_equiv'?");
  expectUsageError(faultline({"replay", "--lane", "engine.brokn", "corpus"}), "engine.broken");
  expectUsageError(faultline({"gen", "--ops", "+ad"}), "did you mean 'add'?");
  expectUsageError(faultline({"list", "oracels"}), "did you mean 'oracles'?");
  expectUsageError(faultline({"--"}), "'--' ends the flags, and no command stands before it");
  expectUsageError(faultline({"chek", "--help"}), "unknown command 'chek' (did you mean 'check'?)");
}

TEST(Usage, NumbersAndTimesAreReadStrictly) {
  expectUsageError(faultline({"fuzz", "--cases", "10x"}), "--cases: expected a whole number, not '10x'");
  expectUsageError(faultline({"fuzz", "--time", "120"}), "--time: a time needs a unit: '120s'");
  expectUsageError(faultline({"fuzz", "--time", "5 parsecs"}),
                   "--time: expected a time such as '120s' or '10m'");
  expectUsageError(faultline({"fuzz", "--seed", "18446744073709551616"}), "does not fit into 64 bits");
}

TEST(Usage, ContradictionsAreRefused) {
  expectUsageError(faultline({"fuzz", "-x", "--maxfail", "3"}), "excludes");
  expectUsageError(faultline({"fuzz", "--resume"}), "--out");
  expectUsageError(faultline({"break", "x.py", "--after", "a", "--every", "3"}), "excludes");
  expectUsageError(faultline({"break", "x.py", "--dry-run", "--exec"}), "excludes");
  expectUsageError(faultline({"break", "x.py", "--exec", "--json", "same", "--timeline", "same"}),
                   "that file is taken by --json");
  expectUsageError(faultline({"gen", "--count", "2"}), "--out DIR");
}

TEST(Usage, NoLimitHoldsInProcess) {
  expectUsageError(faultline({"check", "x.py", "--in-process", "--case-timeout", "1s"}),
                   "--case-timeout excludes --in-process");
  expectUsageError(faultline({"fuzz", "--in-process", "--rss-limit-mb", "512"}),
                   "--rss-limit-mb excludes --in-process");
}

// Before the work: none of these models is there.
TEST(Usage, APlaceThatCannotBeWrittenIsRefusedFirst) {
  const std::string nowhere = scratchPath("no/such/folder/f");
  for (const std::string& path : {nowhere, std::string("/proc/foo"), scratchPath("")}) {
    expectUsageError(faultline({"break", "x.py", "--json", path}), "--json: cannot write '" + path + "'");
  }
  for (const std::string& command : {"check", "replay", "show"}) {
    expectUsageError(faultline({command, "x.py", "--json", nowhere}), "--json: cannot write");
  }
  for (const std::string& flag : {"--svg", "--timeline"}) {
    expectUsageError(faultline({"break", "x.py", "--exec", flag, nowhere}), flag + ": cannot write");
  }
  for (const std::string& command : {"fuzz", "gen"}) {
    const Outcome& outcome = faultline({command, "--seed", "1", "--out", "/proc/foo"});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("/proc/foo"), std::string::npos) << outcome.err;
    EXPECT_EQ(linesOf(outcome.err).size(), 1u) << outcome.err;
  }
  const std::string free = scratchPath("free.json");
  expectUsageError(faultline({"show", "x.py", "--json", free}), "No such file");
  EXPECT_FALSE(std::filesystem::exists(free)) << "what was only tried is gone";
}

TEST(Usage, WordsMissingInAPolicyAreRefused) {
  const auto refused = [](Arguments words, const std::string& says) {
    words.insert(words.begin(), {"break", "corpus/examples/mlp4.py", "--input", "x=float32[16,8]"});
    expectUsageError(faultline(words), says);
  };
  refused({"--policy", "ddp:,,"}, "nothing stands at a comma of 'ddp:,,'");
  refused({"--policy", "shards:"}, "nothing stands behind the ':' of 'shards:'");
  refused({"--policy", "ddp:100,100", "--first-bucket-bytes", "5"}, "says already how large buckets are");
}

TEST(Usage, BytesThatNoTerminalShouldGetAreWrittenOut) {
  expectUsageError(faultline({"show", "no\xb3\x1b/file.ir"}), R"(no\xb3\x1b/file.ir)");
  const std::string model = writeScratch("byte.py", "def f(x):\n    return x + \xb3\n");
  expectUsageError(faultline({"check", model, "--input", "x=float32[3]"}),
                   "byte.py:2:16: expected UTF-8, got byte 0xb3");
}

TEST(Usage, SentencesAreWrappedButNotInsideQuotes) {
  const std::string model = writeScratch("two_sized.py", "def f(left, right):\n    return left + right\n");
  const Outcome& outcome = faultline({"check", model, "--input", "left=float32[2]", "--input",
                                      "right = float32[2, three, and, many, more, that, nobody, can, read]"});
  expectUsageError(outcome, "'right = float32[2, three, and, many, more, that, nobody, can, read]'");
  EXPECT_NE(outcome.err.find("'right = float32[2, three, and, many, more, that, nobody, can, read]'"),
            std::string::npos)
      << outcome.err;
  EXPECT_GT(linesOf(outcome.err).size(), 1u) << outcome.err;
  EXPECT_LE(widest(faultline({"check", "corpus/examples/mlp4.py"}).err), 80u);
}

TEST(Usage, SentencesAreWrappedOnATerminal) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal) + unlockpt(terminal), 0);
  // Open all the while: what was written goes with the last one who may read it.
  const std::string name = ptsname(terminal);
  const int kept = open(name.c_str(), O_RDWR | O_NOCTTY);
  const Outcome outcome = startFaultline({"check", "corpus/examples/mlp4.py"}, 0, name);
  EXPECT_EQ(outcome.code, 2);
  std::string said(4096, '\0');
  said.resize(static_cast<size_t>(std::max<ssize_t>(read(terminal, said.data(), said.size()), 0)));
  close(kept);
  close(terminal);
  said.erase(std::remove(said.begin(), said.end(), '\r'), said.end());
  EXPECT_LE(widest(said), 80u) << said;
  EXPECT_GT(linesOf(said).size(), 1u) << said;
  EXPECT_NE(said.find("faultline check: corpus/examples/mlp4.py: nothing describes x"), std::string::npos)
      << said;
}

TEST(Usage, ValuesThatCannotBeMeantAreRefused) {
  expectUsageError(faultline({"fuzz", "--time", "9223372036s"}), "longer than 30 years");
  expectUsageError(faultline({"fuzz", "--time", "0"}), "above zero");
  expectUsageError(faultline({"fuzz", "--rss-limit-mb", "1"}), "at least 512");
  expectUsageError(faultline({"show", "x.ir", "--json", ""}), "name of a file");
  expectUsageError(faultline({"list", "foo"}), "faultline list --help");
}

TEST(Usage, WhatIsMissingIsNamed) {
  expectUsageError(faultline({"replay"}), "PATH is required");
  expectUsageError(faultline({"show", "no/such/file.case"}), "no/such/file.case: No such file or directory");
  expectUsageError(faultline({"check", "corpus/examples/mlp4.py"}), "x");
}

TEST(BadFiles, ReplayNamesLineAndColumnAndExits2) {
  const Outcome& readme = faultline({"replay", "README.md"});
  EXPECT_EQ(readme.code, 2);
  EXPECT_THAT(readme.err, testing::ContainsRegex("README.md:[0-9]+:[0-9]+: "));

  const std::string empty = writeScratch("bad/empty.case", "");
  const std::string binary = writeScratch("bad/binary.case", std::string("\x00\xff\x80garbage", 10));
  const std::string made = faultline({"gen", "--seed", "1"}).out;
  const std::string cut = writeScratch("bad/cut.case", made.substr(0, made.size() / 2));
  const std::string huge = writeScratch("bad/huge.case", "faultline case 1\n");
  std::filesystem::resize_file(huge, size_t{80} << 20);
  const Outcome& bad = faultline({"replay", empty, binary, cut, huge});
  EXPECT_EQ(bad.code, 2);
  for (const std::string& path : {empty, binary, cut, huge}) {
    EXPECT_NE(bad.err.find(path + ":"), std::string::npos) << path << " in: " << bad.err;
  }
  EXPECT_THAT(bad.err, testing::ContainsRegex("cut.case:[0-9]+:[0-9]+:"));
}

TEST(BadFiles, MisfittingArgumentsHaveLineAndColumn) {
  const std::string graph =
      "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  %z : Tensor = aten::mm(%y)\n"
      "  return (%z)\n";
  const std::string ir = writeScratch("bad/misfit.ir", graph);
  for (const char* command : {"check", "break", "profile"}) {
    expectUsageError(faultline({command, ir}),
                     "misfit.ir:3:17: %z = aten::mm(%y): no overload takes (Tensor)");
    EXPECT_LE(widest(faultline({command, ir}).err.substr(faultline({command, ir}).err.find("(Tensor)"))),
              80u);
  }
  EXPECT_NE(faultline({"show", ir}).out.find("misfit.ir:3:17: %z"), std::string::npos);
  const std::string in_case = writeScratch("bad/misfit.case", "faultline case 1\nrun: float32[2]\n" + graph);
  EXPECT_NE(faultline({"replay", in_case}).complaint().find("misfit.case:5:17: %z"), std::string::npos);
}

TEST(BadFiles, OtherCommandsRefuseThemToo) {
  const std::string binary = writeScratch("bad/binary.ir", std::string("\x7f"
                                                                       "ELF\x02\x01\x00\x00",
                                                                       8));
  const std::string cut = writeScratch("bad/cut.ir", "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x");
  expectUsageError(faultline({"show", "README.md"}), "README.md");
  expectUsageError(faultline({"profile", binary}), "binary.ir");
  expectUsageError(faultline({"profile", cut}), "cut.ir:2:");
  expectUsageError(faultline({"break", "README.md"}), "README.md");
  expectUsageError(faultline({"check", binary}), "binary.ir");
  expectUsageError(faultline({"check", "corpus"}), "corpus");
}

// libtorch's compiler walks the source recursively.
TEST(BadFiles, DeepSourcesAreReadOrRefused) {
  std::string chain = "def f(x):\n    return x", unary = "def f(x):\n    return ",
              blocks = "def f(x, c: bool):\n";
  for (int i = 0; i < 20000; ++i) {
    chain += "+x";
    unary += "-";
  }
  for (int i = 0; i < 300; ++i) blocks += std::string(static_cast<size_t>(i) + 4, ' ') + "if c:\n";
  blocks += std::string(304, ' ') + "x = x + 1\n    return x\n";
  EXPECT_EQ(faultline({"show", writeScratch("deep/chain.py", chain + "\n")}).code, 0);
  EXPECT_EQ(faultline({"show", writeScratch("deep/unary.py", unary + "x\n")}).code, 0);
  expectUsageError(faultline({"check", writeScratch("deep/blocks.py", blocks), "--input", "x=float32[2]",
                              "--input", "c=true"}),
                   "deeper than 256 levels");
}

TEST(Check, SaysWhatEagerThrew) {
  const std::string model = writeScratch("throws.py", "def f(x):\n    return torch.max(x, 1)\n");
  const Outcome& outcome = faultline({"check", model, "--input", "x=float32[2]"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.out.find("run 1, forward: Dimension"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("forward_equiv"), std::string::npos) << "a table of what was not looked at";
}

TEST(Check, AModelThatTakesLongerThanTheTimeoutIsNoFailure) {
  const std::string model = writeScratch(
      "long.py", "def f(x):\n    while bool(x.sum() == x.sum()):\n        x = x * 1\n    return x\n");
  const Outcome& outcome =
      faultline({"check", model, "--input", "x=float32[2]", "--case-timeout", "3s", "--json", "-"});
  EXPECT_EQ(outcome.code, 3) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find("--case-timeout 3s, in which"), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.json().at("failures").empty());
  EXPECT_EQ(outcome.json().at("skipped"), (nlohmann::json{{"reference_timeout", 1}}));
}

TEST(Check, SaysWhatANondeterministicReferenceIs) {
  const std::string model =
      writeScratch("unwritten.py", "def f(x):\n    return x + torch.empty(400) + torch.rand(400)\n");
  const Outcome& outcome = faultline({"check", model, "--input", "x=float32[400]"});
  EXPECT_EQ(outcome.code, 3) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("reference_nondeterministic\nTwo runs of eager PyTorch"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("torch.empty"), std::string::npos) << outcome.out;
}

// Marks have to stand below what they point at.
TEST(Check, TracebacksKeepTheirLines) {
  const Outcome& outcome =
      faultline({"check", "corpus/known/chunk_half_returned.case", "--lane", "stock", "--ignore-known"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const std::vector<std::string> lines = linesOf(outcome.out);
  const auto marks = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("~ <--- HERE") != std::string::npos;
  });
  ASSERT_NE(marks, lines.end()) << outcome.out;
  EXPECT_GT(marks->find('~'), 2u + 4u) << outcome.out;  // indented as the source is
  EXPECT_NE(outcome.out.find("grad_tensor1, grad_tensor2, None\n"), std::string::npos) << outcome.out;
}

const std::string kLookup = "def f(w, i):\n    return torch.embedding(w, i)\n";

TEST(Check, SaysThatIndicesAreGivenWithValues) {
  const std::string model = writeScratch("lookup.py", kLookup);
  expectUsageError(faultline({"check", model, "--input", "w=float32[2,3]"}),
                   "--input 'i=int64[3]:values=[0,1,2]'");
  const Arguments drawn = {model, "--input", "w=float32[2,3]", "--input", "i=int64[40]"};
  Arguments check = drawn, run = drawn;
  check.insert(check.begin(), "check");
  run.insert(run.begin(), "break");
  run.push_back("--exec");
  EXPECT_NE(faultline(check).out.find("say which"), std::string::npos) << faultline(check).out;
  EXPECT_NE(faultline(run).complaint().find("say which"), std::string::npos) << faultline(run).err;
}

TEST(Check, NamesMayBeQuoted) {
  const std::string model = writeScratch("quoted.ir", R"(graph(%"a b" : Tensor):
  %y : Tensor = aten::relu(%"a b")
  return (%y)
)");
  EXPECT_EQ(
      faultline({"check", model, "--lane", "engine.broken", "--input", R"("a b"=float32[3]:grad)"}).code, 0);
  expectUsageError(faultline({"check", model}), R"(--input '"a b"=float32[4,8]')");
}

// Each lane runs the program as freshly loaded: what it appends to a constant it finds in its own later runs.
TEST(Check, LanesDoNotShareConstants) {
  const std::string model = writeScratch("list.ir", R"(graph(%x : Tensor):
  %l : int[] = prim::Constant[value=[1, 2]]()
  %i : int = prim::Constant[value=7]()
  %m : int[] = aten::append(%l, %i)
  %n : int = aten::len(%l)
  %y : Tensor = aten::mul(%x, %n)
  return (%y, %l)
)");
  const Outcome& outcome = faultline({"check", model, "--input", "x=float32[2]"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(Check, SaysWhenGradientsAreNoneOrThrow) {
  const std::string model =
      writeScratch("written.py", "def f(x, w):\n    y = torch.mm(x, w)\n    x.mul_(0.5)\n    return y\n");
  const Outcome& none = faultline({"check", model, "--input", "x=float32[4,3]", "--input", "w=float32[3,5]"});
  EXPECT_EQ(none.code, 0);
  EXPECT_NE(none.out.find("No gradient was compared"), std::string::npos) << none.out;
  const Outcome& throws =
      faultline({"check", model, "--input", "x=float32[4,3]", "--input", "w=float32[3,5]:grad"});
  EXPECT_EQ(throws.code, 0);
  EXPECT_NE(throws.out.find("run 1, backward0: one of"), std::string::npos) << throws.out;
}

TEST(Check, SaysThatAParamLineMakesNoArgument) {
  const std::string model =
      writeScratch("param.py", "# param w: float32[3,5]\ndef f(x):\n    return torch.mm(x, w)\n");
  const Outcome& outcome = faultline({"check", model, "--input", "x=float32[4,3]"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.complaint().find("name it in the def as well"), std::string::npos) << outcome.err;
}

TEST(Break, TakesKindsAsTablesPrintThem) {
  const std::string model = writeScratch("kinds.py", "def f(x):\n    return torch.sin(x.relu()).relu()\n");
  const Outcome& outcome = faultline(
      {"break", model, "--input", "x=float32[4]:grad", "--policy", "kinds:aten::relu,sin", "--dry-run"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("cut after relu"), std::string::npos) << outcome.out;
}

// What is to become ready in a body becomes ready elsewhere when the body does not run.
TEST(BreakExec, PredictsOnlyForPiecesThatRan) {
  const std::string model = writeScratch(
      "rounds.py",
      "# param v: float32[3,3] seed=1\ndef f(x, v, n: int):\n    for i in range(n):\n"
      "        x = torch.tanh(torch.mm(x, v))\n        x = x.relu()\n    return torch.mm(x, v)\n");
  const Outcome& outcome = faultline(
      {"break", model, "--input", "x=float32[4,3]:grad", "--input", "n=0", "--after", "tanh", "--exec"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.find("NOT as predicted"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("v, x: the piece that comes first"), std::string::npos) << outcome.out;
}

TEST(Check, HooksEveryInputThatRequiresGrad) {
  const std::string model = writeScratch("hooked.py", "def f(x, w):\n    return torch.mm(x, w).relu()\n");
  const Outcome& outcome = faultline({"check", model, "--lane", "engine.broken", "--input",
                                      "x=float32[4,3]:grad", "--input", "w=float32[3,5]:grad"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("hook_order      engine.broken  passed"), std::string::npos) << outcome.out;
}

TEST(Check, TakesNamedTuplesAndQuantizedResults) {
  const std::string tuple = writeScratch("max.py", "def f(x):\n    return torch.max(x, 1)\n");
  EXPECT_EQ(faultline({"check", tuple, "--input", "x=float32[2,3]"}).code, 0);
  const std::string quantized =
      writeScratch("quantized.py", "def f(x):\n    return torch.quantize_per_tensor(x, 0.1, 0, 12)\n");
  const Outcome& checked = faultline({"check", quantized, "--input", "x=float32[2,3]"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

TEST(BreakExec, TakesWhatHasNoElementsOrNoStrides) {
  const std::string empty = writeScratch("empty.py", "def f(x):\n    return x[0:0]\n");
  const std::string sparse = writeScratch("sparse.py", "def f(x):\n    return x.to_sparse()\n");
  for (const std::string& model : {empty, sparse}) {
    const Outcome& run =
        faultline({"break", model, "--input", "x=float32[2,3]:grad", "--every", "1", "--exec"});
    EXPECT_EQ(run.code, 0) << run.out << run.err;
  }
}

TEST(BreakExec, EitherSideWritesIntoConstantsOfItsOwn) {
  const std::string model = writeScratch("constant.ir", R"(graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %c : Tensor = prim::Constant[value=tensor(Float(2), [1., 2.])]()
  %d : Tensor = aten::add_(%c, %x, %one)
  %y : Tensor = aten::mul(%x, %d)
  return (%y)
)");
  for (const char* policy : {"none", "every:1"}) {
    const Outcome& run =
        faultline({"break", model, "--input", "x=float32[2]:grad", "--policy", policy, "--exec"});
    EXPECT_EQ(run.code, 0) << run.out << run.err;
  }
}

// The op stands in the first piece and gives the parameter itself on: its gradient is made by the second.
TEST(BreakExec, AParameterThatIsHandedOnMayBeReadyEarlier) {
  const std::string model = writeScratch("handed_on.py",
                                         "# param w: float32[4,4]:grad seed=1\ndef f(x, w):\n"
                                         "    v = w.contiguous()\n    y = torch.sin(x)\n"
                                         "    return torch.mm(y, v)\n");
  const Outcome& run =
      faultline({"break", model, "--input", "x=float32[4,4]:grad", "--after", "sin", "--exec"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
}

// The first piece runs backward for u, but sends w no gradient: only which arm runs would have told.
TEST(BreakExec, APieceThatSendsNoGradientNeedNotComeFirst) {
  const std::string model =
      writeScratch("untaken_arm.py",
                   "# param w: float32[4,4]:grad seed=1\n"
                   "# param u: float32[4,4]:grad seed=2\n"
                   "def f(x, w, u, k: bool):\n"
                   "    a = torch.mm(x, u)\n    if k:\n        y = torch.sin(a)\n    else:\n"
                   "        y = torch.mm(a, w)\n    z = torch.tanh(y)\n    return torch.mm(z, w)\n");
  const Outcome& run = faultline(
      {"break", model, "--input", "x=float32[4,4]", "--input", "k=true", "--after", "tanh", "--exec"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(run.out.find("NOT as predicted"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("w: no gradient came to it"), std::string::npos) << run.out;
}

TEST(BreakExec, CountsHooksAsEagerDoes) {
  const std::string own_backward = writeScratch("own_backward.ir", R"(graph(%x : Tensor):
  %n : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=0]()
  %s : Tensor = aten::sum(%x, %n)
   = aten::backward(%s, %n, %n, %f)
  return (%x)
)");
  const Outcome& run =
      faultline({"break", own_backward, "--input", "x=float32[2,3]:grad", "--every", "1", "--exec"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
}

// Its hooks are counted, and are none of the backward from the loss that was predicted.
TEST(BreakExec, TellsBackwardsOfTheProgramApart) {
  const std::string model = writeScratch("penalty.ir", R"(graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %n : NoneType = prim::Constant()
  %t : bool = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%a)
  %c : Tensor = aten::mul(%b, %v)
  %s : Tensor = aten::sum(%c, %n)
   = aten::backward(%s, %n, %t, %t)
  return (%s)
)");
  const Outcome& run = faultline({"break", model, "--input", "x=float32[3]", "--input", "w=float32[3]:grad",
                                  "--input", "v=float32[3]:grad", "--after", "sin", "--exec"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(run.out.find("NOT as predicted"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("200%"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("Not among these: 2 calls in backwards"), std::string::npos) << run.out;
}

TEST(BreakExec, PartsOfInputsAreOfNoPiece) {
  const std::string model = writeScratch("pair.ir", R"(graph(%t : (Tensor, Tensor), %w : Tensor):
  %a : Tensor, %b : Tensor = prim::TupleUnpack(%t)
  %c : Tensor = aten::sin(%a)
  %d : Tensor = aten::mul(%c, %b)
  %e : Tensor = aten::mul(%d, %w)
  return (%e)
)");
  const Outcome& run = faultline({"break", model, "--input", "t=(float32[3]:grad, float32[3]:grad)",
                                  "--input", "w=float32[3]:grad", "--every", "1", "--exec"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(run.out.find("NOT as predicted"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("t[1]: of no piece in the plan"), std::string::npos) << run.out;
}

// The first piece has a gradient of its own, so that it runs backward, and gives w on.
TEST(BreakExec, WhatIsHandedOnIsNotPredictedFalsely) {
  const std::string model =
      writeScratch("given_on.py",
                   "# param w: float32[4,4]:grad seed=1\n"
                   "# param u: float32[4,4]:grad seed=2\n"
                   "# param z: float32[4,4]:grad seed=3\n"
                   "def f(x, w, u, z):\n"
                   "    a = torch.mm(x, z)\n    v = w.contiguous()\n    y = torch.sin(a)\n"
                   "    return torch.mm(y, v)\n");
  const Outcome& run = faultline({"break", model, "--input", "x=float32[4,4]", "--after", "sin", "--exec"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(run.out.find("NOT as predicted"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("w: an op of an earlier piece hands it on"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("No gradient came to u"), std::string::npos) << run.out;
}

TEST(BreakExec, WhatTheProgramPrintsIsNotOnStdout) {
  const std::string model =
      writeScratch("prints.py", "def f(x):\n    print('said by the program')\n    return x.sin().cos()\n");
  const auto run = [&](Arguments more) {
    more.insert(more.begin(), {"break", model, "--input", "x=float32[3]:grad", "--every", "1", "--exec"});
    return faultline(more);
  };
  for (const Arguments& more : {Arguments{"--json", "-"}, Arguments{"--timeline", "-"}}) {
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(outcome.json().empty());
    EXPECT_NE(outcome.err.find("said by the program"), std::string::npos);
  }
}

TEST(BreakExec, LeavesLastWordsWhenTheProgramDies) {
  const std::string dies = writeScratch("dies.ir", R"(graph(%a : int, %b : int):
  %y : int = aten::remainder(%a, %b)
  return (%y)
)");
  const Outcome& run =
      faultline({"break", dies, "--input", "a=-9223372036854775808", "--input", "b=-1", "--exec"});
  EXPECT_NE(run.err.find("the program died inside PyTorch: SIGFPE"), std::string::npos) << run.err;
}

TEST(ExitCode, AFullDiskIsAFaultOfOurs) {
  const Outcome& outcome = faultline({"list", "kinds", "--json", "/dev/full"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("/dev/full"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace faultline::test
