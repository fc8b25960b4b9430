#include "tests/fuzz/cli/run_faultline.h"

#include "generators/case/case.h"

namespace faultline::test {
namespace {

TEST(Gen, PrintsACaseThatIsAFunctionOfSeedAndIndex) {
  const Outcome& one = faultline({"gen", "--seed", "1", "--index", "3"});
  EXPECT_EQ(one.code, 0);
  const auto read = readCase(one.out);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(writeCase(*read), one.out);

  const std::string folder = scratchPath("gen");
  const Outcome& many =
      faultline({"gen", "--seed", "1", "--index", "2", "--count", "2", "--out", folder, "--json", "-"});
  EXPECT_EQ(many.code, 0);
  const auto json = many.json();
  EXPECT_EQ(json.at("schema"), "faultline.gen/1");
  ASSERT_EQ(json.at("cases").size(), 2u);
  EXPECT_EQ(json.at("cases")[1].at("index"), 3);
  EXPECT_EQ(readWhole(json.at("cases")[1].at("file")), one.out);
  EXPECT_NE(readWhole(json.at("cases")[0].at("file")), one.out);
}

TEST(Gen, ATapeGivesTheGraphItWasRecordedFrom) {
  const Outcome& tape = faultline({"gen", "--seed", "1", "--index", "3", "--tape"});
  EXPECT_EQ(tape.code, 0);
  const std::string path = writeScratch("one.tape", tape.out);
  const auto made = readCase(faultline({"gen", path}).out);
  const auto original = readCase(faultline({"gen", "--seed", "1", "--index", "3"}).out);
  ASSERT_TRUE(made && original);
  EXPECT_EQ(writeCase(*made), writeCase(*original));
}

TEST(Gen, LeavesOutOpsThatAreNotWanted) {
  const Outcome& outcome = faultline({"gen", "--seed", "1", "--index", "3", "--ops", "+neg"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(readCase(outcome.out)) << outcome.out;
}

TEST(Show, PrintsACaseForReading) {
  const std::string path = writeScratch("shown.case", faultline({"gen", "--seed", "1", "--index", "3"}).out);
  const Outcome& shown = faultline({"show", path});
  EXPECT_EQ(shown.code, 0);
  EXPECT_LE(widest(shown.out), 80u) << shown.out;
  for (const char* expected : {"Case, seed ", "Run 1", "opcode", "placeholder", "output"}) {
    EXPECT_NE(shown.out.find(expected), std::string::npos) << expected << " in " << shown.out;
  }
  const auto json = faultline({"show", path, "--json", "-"}).json();
  EXPECT_EQ(json.at("schema"), "faultline.show/1");
  EXPECT_EQ(json.at("kind"), "case");
  EXPECT_TRUE(json.at("case").at("runs").is_array());
}

TEST(Show, PrintsATapeWithTheCaseItGives) {
  const std::string path =
      writeScratch("shown.tape", faultline({"gen", "--seed", "1", "--index", "3", "--tape"}).out);
  const Outcome& shown = faultline({"show", path, "--ir"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_EQ(shown.out.rfind("# Tape of ", 0), 0u) << shown.out;
  EXPECT_NE(shown.out.find("It gives:"), std::string::npos);
  EXPECT_NE(shown.out.find("graph(%"), std::string::npos);
}

TEST(Show, WhatItPrintsAsIrCanBeReadAgain) {
  const std::string model = writeScratch("named.py", "def f(x):\n    return torch.max(x, 1)\n");
  const Outcome& shown = faultline({"show", model, "--ir"});
  EXPECT_EQ(shown.code, 0);
  const Outcome& again = faultline({"show", writeScratch("named.ir", shown.out), "--ir"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, shown.out);
}

TEST(Show, ReadsAGraphAsLibtorchPrintsIt) {
  const std::string path = writeScratch("dump.ir",
                                        "# a comment\ngraph(%x.1 : Float(2, 3, strides=[3, 1])):\n"
                                        "  %2 : Tensor = aten::relu(%x.1) # model.py:3:4\n  return (%2)\n");
  const Outcome& shown = faultline({"show", path});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("Graph, valid"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("relu"), std::string::npos);
}

}  // namespace
}  // namespace faultline::test
