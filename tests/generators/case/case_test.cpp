#include "generators/case/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faultline/ir.h"
#include "generators/case/file.h"
#include "generators/choices/choices.h"

namespace faultline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Everything the grammar has, as a person might write it.
const char* const kEverything = R"(
# found by hand
faultline case 1   # the version
seed: 42
note from: gen --seed 3 # not a comment
note text: "two\nlines"
profile: keep
breaks: after  mul relu   # where the seams are
hook: tensor input 0
hook: retain_grad seam mul
hook: post_accumulate input 1
passes: EliminateDeadCode ConstantPooling
ranks: 2
expect: stock@2.13.. run_equiv/stock/throws/view_of_leaf gradient_equiv/stock/grad
expect: engine pass
expect: pass.dce@2.11..2.13 "pass_laws/pass/throws/a b"
colour: blue and   green
run: float32[2,3]:grad, float32[2,3] grad seed=4, 3  # profiles
  backward: all, output 0
run: float32[2,3]:grad, @0, -1
  nograd
run: float32[2,3]:grad:strides=[1,2], float32[2,3]:edges, 0
  backward: double
  backward: output 0

# pasted
graph(%x : Tensor, %y : Tensor, %n : int):
  # a comment inside
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::add(%b, %b, %n)
  return (%c)
)";

const char* const kGraph = "graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n";

bool sameCase(const Case& a, const Case& b) {
  return a.seed == b.seed && a.runs == b.runs && a.plan == b.plan && a.expectations == b.expectations &&
         a.known == b.known && a.notes == b.notes && a.unknown == b.unknown &&
         graphsEqual(*a.graph, *b.graph);
}

Case readOrFail(std::string_view text) {
  auto c = readCase(text);
  EXPECT_TRUE(c) << c.error().str();
  return c ? std::move(*c) : Case{};
}

TEST(Case, EveryDirectiveIsRead) {
  Case c = readOrFail(kEverything);
  ASSERT_NE(c.graph, nullptr);
  EXPECT_EQ(c.seed, 42u);
  EXPECT_THAT(c.notes, ElementsAre(std::pair("from", "gen --seed 3 # not a comment"),
                                   std::pair("text", "two\nlines")));
  EXPECT_EQ(c.plan.profile, "keep");
  EXPECT_EQ(c.plan.breaks, "after mul relu");
  EXPECT_EQ(c.plan.hooks, (std::vector<HookSpec>{{HookKind::Tensor, 0, ""},
                                                 {HookKind::RetainGrad, 0, "mul"},
                                                 {HookKind::PostAccumulate, 1, ""}}));
  EXPECT_THAT(c.plan.passes, ElementsAre("EliminateDeadCode", "ConstantPooling"));
  EXPECT_EQ(c.plan.ranks, 2);
  ASSERT_EQ(c.expectations.size(), 3u);
  EXPECT_EQ(
      c.expectations[0],
      (Expectation{
          "stock", "2.13", "", true, {"run_equiv/stock/throws/view_of_leaf", "gradient_equiv/stock/grad"}}));
  EXPECT_EQ(c.expectations[1], (Expectation{"engine", "", "", false, {}}));
  EXPECT_EQ(c.expectations[2],
            (Expectation{"pass.dce", "2.11", "2.13", false, {"pass_laws/pass/throws/a b"}}));
  EXPECT_EQ(c.unknown, (std::vector<UnknownDirective>{{"colour", "blue and   green"}}));
  ASSERT_EQ(c.runs.size(), 3u);
  EXPECT_EQ(c.runs[0].inputs.at(1).seed, 4u);
  EXPECT_EQ(c.runs[0].backwards,
            (std::vector<BackwardSpec>{{BackwardSpec::Kind::All, 0}, {BackwardSpec::Kind::Output, 0}}));
  EXPECT_FALSE(c.runs[1].grad_mode);
  EXPECT_EQ(c.runs[1].inputs.at(1).kind, InputSpec::Kind::SameAs);
  EXPECT_THAT(c.runs[1].backwards, testing::IsEmpty());
  EXPECT_EQ(c.runs[2].backwards,
            (std::vector<BackwardSpec>{{BackwardSpec::Kind::Double, 0}, {BackwardSpec::Kind::Output, 0}}));
  EXPECT_EQ(c.graph->inputs().size(), 3u);
}

TEST(Case, WhatIsWrittenIsReadBackAndWrittenAgain) {
  Case c = readOrFail(kEverything);
  std::string text = writeCase(c);
  Case again = readOrFail(text);
  EXPECT_TRUE(sameCase(c, again)) << text;
  EXPECT_EQ(writeCase(again), text);
}

TEST(Case, TheTextIsForPeople) {
  Case c = readOrFail(kEverything);
  std::string text = writeCase(c);
  EXPECT_THAT(text, testing::StartsWith(
                        "faultline case 1\n"
                        "seed: 42\n"
                        "note from: gen --seed 3 # not a comment\n"
                        "note text: \"two\\nlines\"\n"
                        "profile: keep\n"
                        "breaks: after mul relu\n"
                        "hook: tensor input 0\n"
                        "hook: retain_grad seam mul\n"
                        "hook: post_accumulate input 1\n"
                        "passes: EliminateDeadCode ConstantPooling\n"
                        "ranks: 2\n"
                        "expect: stock@2.13.. run_equiv/stock/throws/view_of_leaf gradient_equiv/stock/grad\n"
                        "expect: engine pass\n"
                        "expect: pass.dce@2.11..2.13 \"pass_laws/pass/throws/a b\"\n"
                        "colour: blue and   green\n"
                        "run: float32[2,3]:grad, float32[2,3]:grad:seed=4, 3\n"
                        "  backward: all, output 0\n"
                        "run: float32[2,3]:grad, @0, -1\n"
                        "  nograd\n"
                        "run: float32[2,3]:grad:strides=[1,2], float32[2,3]:edges, 0\n"
                        "  backward: double, output 0\n"
                        "\n"
                        "graph("));
}

TEST(Case, TheExampleOfTheReadmeIsOne) {
  std::string readme = readFile(std::string(FAULTLINE_CORPUS) + "/../generators/case/README.md").value();
  size_t begin = readme.find("```\nfaultline case 1\n");
  ASSERT_NE(begin, std::string::npos);
  begin += 4;
  Case c = readOrFail(readme.substr(begin, readme.find("```", begin) - begin));
  EXPECT_EQ(c.runs.size(), 2u);
  EXPECT_TRUE(sameCase(c, readOrFail(writeCase(c))));
}

TEST(Case, NamesTheKnownIssuesThatItShows) {
  const std::string run = "run: float32[2]\n";
  const Case c =
      readOrFail("faultline case 1\nknown: view_of_product  no_grad_caller  # two\n" + run + kGraph);
  EXPECT_EQ(c.known, (std::vector<std::string>{"view_of_product", "no_grad_caller"}));
  EXPECT_TRUE(sameCase(readOrFail(writeCase(c)), c));
  const auto nothing = readCase("faultline case 1\nknown:\n" + run + kGraph);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().where->line, 2u);
}

TEST(Case, AnOperatorThatThisTorchLacksIsToldApartFromAMistake) {
  const auto refusal = [](const std::string& node) {
    const auto c =
        readCase("faultline case 1\nrun: float32[2]\ngraph(%x : Tensor):\n  %y : Tensor = " + node +
                 "\n  return (%y)\n");
    EXPECT_FALSE(c) << node;
    return c ? Error{} : c.error();
  };
  EXPECT_TRUE(isMissingOperator(refusal("aten::of_another_torch(%x)")));
  EXPECT_EQ(refusal("aten::of_another_torch(%x)").where->line, 4u);
  EXPECT_FALSE(isMissingOperator(refusal("aten::neg()")));
  EXPECT_FALSE(isMissingOperator(refusal("aten::neg(%z)")));
}

TEST(Case, TheShortestOne) {
  Case c =
      readOrFail("faultline case 1\nrun:\ngraph():\n  %a : int = prim::Constant[value=1]()\n  return (%a)\n");
  EXPECT_EQ(c.seed, 0u);
  EXPECT_EQ(c.runs, std::vector<CaseRun>(1));
  EXPECT_EQ(c.plan, Plan{});
  EXPECT_TRUE(sameCase(c, readOrFail(writeCase(c))));
}

TEST(Case, ATildeRepeatsTheRunBefore) {
  std::string values = "float32[4]:values=[0.123456789, 0.123456789, 0.123456789, 0.123456789]";
  Case c = readOrFail("faultline case 1\nrun: " + values +
                      "\n  backward: all\nrun: ~\nrun: float32[4]\nrun: ~\n" + kGraph);
  EXPECT_EQ(c.runs.at(1).inputs, c.runs.at(0).inputs);
  EXPECT_TRUE(c.runs.at(1).backwards.empty());
  EXPECT_EQ(c.runs.at(3).inputs, c.runs.at(2).inputs);
  std::string text = writeCase(c);
  EXPECT_THAT(text,
              HasSubstr(values + "\n  backward: all\nrun: ~\nrun: float32[4]\nrun: float32[4]\n\ngraph("));
  EXPECT_TRUE(sameCase(c, readOrFail(text)));
}

TEST(Case, LinesMayEndAsOnWindows) {
  std::string text = kEverything;
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.insert(at, "\r");
  EXPECT_TRUE(sameCase(readOrFail(text), readOrFail(kEverything)));
}

TEST(Case, SubgraphsAndProfileNodesComeAlong) {
  Case c = readOrFail(R"(faultline case 1
run: float32[2]:grad
graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=1, device=cpu)](%x)
  %y : Tensor = prim::FunctionalGraph_0(%p)
  return (%y)
with prim::FunctionalGraph_0 = graph(%a : Tensor):
  %b : Tensor = aten::neg(%a)
  return (%b)
)");
  EXPECT_TRUE(sameCase(c, readOrFail(writeCase(c))));
  EXPECT_THAT(writeCase(c), HasSubstr("with prim::FunctionalGraph_0 = graph("));
}

TEST(Case, AClonePartsFromItsOriginal) {
  Case c = readOrFail(R"(faultline case 1
run:
graph():
  %t : Tensor = prim::Constant[value={2.5}]()
  %y : Tensor = prim::FunctionalGraph_0(%t)
  return (%y)
with prim::FunctionalGraph_0 = graph(%a : Tensor):
  %t : Tensor = prim::Constant[value={1.5}]()
  %b : Tensor = aten::mul(%a, %t)
  return (%b)
)");
  std::string before = writeCase(c);
  Case clone = cloneCase(c);
  EXPECT_TRUE(sameCase(c, clone));
  for (torch::jit::Node* node : clone.graph->nodes()) {
    if (node->kind() == torch::jit::prim::Constant) node->t(torch::jit::attr::value).zero_();
    if (!node->hasAttribute(torch::jit::attr::Subgraph)) continue;
    auto inner = node->g(torch::jit::attr::Subgraph);
    for (torch::jit::Node* deep : inner->nodes()) {
      if (deep->kind() == torch::jit::prim::Constant) deep->t(torch::jit::attr::value).zero_();
    }
    inner->insertConstant(7);
  }
  clone.runs.clear();
  EXPECT_EQ(writeCase(c), before);
}

struct BadCase {
  const char* name;
  std::string header;  // in place of or before the run and graph below
  size_t line, column;
  const char* message;
};
void PrintTo(const BadCase& bad, std::ostream* out) { *out << bad.name; }

class CaseErrors : public testing::TestWithParam<BadCase> {};

TEST_P(CaseErrors, SayWhereAndWhatWasExpected) {
  auto c = readCase(GetParam().header);
  ASSERT_FALSE(c);
  ASSERT_TRUE(c.error().where) << c.error().str();
  EXPECT_EQ(c.error().where->line, GetParam().line) << c.error().str();
  EXPECT_EQ(c.error().where->column, GetParam().column) << c.error().str();
  EXPECT_THAT(c.error().message, HasSubstr(GetParam().message));
}

std::string withGraph(const std::string& lines) { return "faultline case 1\n" + lines + kGraph; }

INSTANTIATE_TEST_SUITE_P(
    All, CaseErrors,
    testing::Values(
        BadCase{"empty", "", 1, 1, "expected 'faultline case 1', got the end"},
        BadCase{"readme", "# Faultline\n\nFinds bugs.\n", 3, 1,
                "expected 'faultline case 1', got 'Finds bugs.'"},
        BadCase{"version", "faultline case 2\n", 1, 16, "expected version 1"},
        BadCase{"version_text", "faultline case 1 2\n", 1, 18, "the end of the line"},
        BadCase{"cut", "faultline case 1\nseed: 3\n", 3, 1, "expected a directive or 'graph(', got the end"},
        BadCase{"no_run", withGraph(""), 2, 1, "a case has at least one 'run:'"},
        BadCase{"five_runs",
                withGraph("run: float32[]\nrun: float32[]\nrun: float32[]\nrun: float32[]\nrun: float32[]\n"),
                6, 1, "at most 4 runs"},
        BadCase{"no_directive", withGraph("= 3\n"), 2, 1, "expected a directive such as 'run:'"},
        BadCase{"no_colon", withGraph("seed 3\n"), 2, 5, "expected ':' behind 'seed'"},
        BadCase{"twice", withGraph("seed: 3\nseed: 4\n"), 3, 1, "'seed' to be given once"},
        BadCase{"required", withGraph("!colour: blue\n"), 2, 1,
                "does not know the required directive '!colour'"},
        BadCase{"seed", withGraph("seed: -3\n"), 2, 7, "expected a seed"},
        BadCase{"seed_more", withGraph("seed: 3 4\n"), 2, 9, "the end of the line"},
        BadCase{"nograd_early", withGraph("nograd\n"), 2, 7, "a 'run:' before 'nograd'"},
        BadCase{"backward_early", withGraph("backward: all\n"), 2, 11, "a 'run:' before 'backward:'"},
        BadCase{"backward", withGraph("run: float32[]\nbackward: some\n"), 3, 11, "all, double or output N"},
        BadCase{"backward_output", withGraph("run: float32[]\n backward: all, output 1\n"), 3, 1,
                "output 1 of a graph with 1 outputs"},
        BadCase{"input", withGraph("run: float32[\n"), 2, 14, "expected a size"},
        BadCase{"input_comma", withGraph("run: float32[],\n"), 2, 16, "an input behind ','"},
        BadCase{"input_blank", withGraph("run: float32[] 3\n"), 2, 16, "',' between inputs"},
        BadCase{"input_count", withGraph("run: float32[], 3\n"), 2, 1,
                "the graph has 1 inputs, this run gives 2"},
        BadCase{"input_type", withGraph("run:   3\n"), 2, 8,
                "input 0 (%x): Tensor is declared, the input is int"},
        BadCase{"input_same", withGraph("run: @0\n"), 2, 6, "@0 is not an earlier input"},
        BadCase{"input_before", withGraph("run: ~\n"), 2, 6, "there is none in a run before"},
        BadCase{"breaks_empty", withGraph("breaks:\nrun: float32[]\n"), 2, 8,
                "expected none, every N or after NAME"},
        BadCase{"breaks_none", withGraph("breaks: none 3\nrun: float32[]\n"), 2, 1, "nothing stands behind"},
        BadCase{"breaks_every", withGraph("breaks: every 0\nrun: float32[]\n"), 2, 1, "N of at least 1"},
        BadCase{"breaks_every_word", withGraph("breaks: every x\nrun: float32[]\n"), 2, 1, "N of at least 1"},
        BadCase{"breaks_after", withGraph("breaks: after\nrun: float32[]\n"), 2, 1, "names of ops"},
        BadCase{"breaks_name", withGraph("breaks: after nge\nrun: float32[]\n"), 2, 1,
                "the graph has no op 'nge' (did you mean 'neg'?)"},
        BadCase{"hook_kind", withGraph("hook: grad input 0\n"), 2, 7,
                "tensor, retain_grad, post_accumulate, node_pre"},
        BadCase{"hook_on", withGraph("hook: tensor 0\n"), 2, 14, "'input N' or 'seam NAME'"},
        BadCase{"hook_input", withGraph("hook: tensor input 1\nrun: float32[]\n"), 2, 1,
                "a hook on input 1 of a graph with 1 inputs"},
        BadCase{"hook_seam", withGraph("hook: tensor seam x\nrun: float32[]\n"), 2, 1,
                "the graph has no op 'x'"},
        BadCase{"hook_seam_name", withGraph("hook: tensor seam\n"), 2, 18, "the name of an op"},
        BadCase{"profile", withGraph("profile: some\n"), 2, 10, "none, keep or record"},
        BadCase{"ranks", withGraph("ranks: 0\n"), 2, 8, "1 to 64 ranks"},
        BadCase{"note", withGraph("note : x\n"), 2, 6, "a name behind 'note'"},
        BadCase{"note_colon", withGraph("note x\n"), 2, 7, "':' behind the note's name"},
        BadCase{"note_twice", withGraph("note a: 1\nnote a: 2\n"), 3, 6, "each note to be given once"},
        BadCase{"expect_group", withGraph("expect: @2 pass\n"), 2, 9, "a lane or a group of lanes"},
        BadCase{"expect_range", withGraph("expect: stock@ pass\n"), 2, 15, "a version such as 2.13"},
        BadCase{"expect_range_dots", withGraph("expect: stock@.. pass\n"), 2, 15, "a version range"},
        BadCase{"expect_range_down", withGraph("expect: stock@2.13..2.2 pass\n"), 2, 15,
                "a range that goes up"},
        BadCase{"expect_blank", withGraph("expect: stock\n"), 2, 14, "'@' and versions, or a blank"},
        BadCase{"expect_signature", withGraph("expect: stock passes\n"), 2, 15, "'pass' or a signature"},
        BadCase{"expect_pass_more", withGraph("expect: stock pass a/b/c\n"), 2, 20, "the end of the line"},
        BadCase{"graph", "faultline case 1\nrun:\n\ngraph(%x : Tensor)\n  return ()\n", 5, 3, "expected"},
        BadCase{"graph_op",
                "faultline case 1\nrun: float32[]\ngraph(%x : Tensor):\n  %y : Tensor = aten::nge(%x)\n  "
                "return (%y)\n",
                4, 17, "aten::nge"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Case, NoBytesBreakTheReader) {
  const std::string text = kEverything;
  Random random(11);
  int accepted = 0, header_refused = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string mutated = text;
    for (uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      size_t at = random.below(mutated.size());
      switch (random.below(5)) {
        case 0:
          mutated[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          mutated.erase(at, random.below(30));
          break;
        case 2:
          mutated.insert(at, mutated.substr(random.below(mutated.size()), random.below(60)));
          break;
        case 3: {  // a line goes
          size_t begin = mutated.rfind('\n', at);
          if (begin != std::string::npos) mutated.erase(begin, mutated.find('\n', begin + 1) - begin);
          break;
        }
        default:
          mutated.resize(at + 1);
      }
      if (mutated.empty()) mutated = "x";
    }
    fileKind(mutated);
    if (auto c = readCase(mutated)) {
      ++accepted;
      std::string written = writeCase(*c);
      auto again = readCase(written);
      ASSERT_TRUE(again) << again.error().str() << "\n" << written << "\nfrom\n" << mutated;
      ASSERT_EQ(writeCase(*again), written) << mutated;
    } else {
      ASSERT_TRUE(c.error().where) << c.error().str() << "\n" << mutated;
      ++header_refused;
    }
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(header_refused, 300);
}

TEST(Case, ManyLinesTakeNoLongerThanTheyAre) {
  std::string text = "faultline case 1\n";
  for (int i = 0; i < 100000; ++i) text += "x: y\n";
  Case c = readOrFail(text + "run: float32[]\n" + kGraph);
  EXPECT_EQ(c.unknown.size(), 100000u);
}

TEST(FileKind, SaysTheFirstLine) {
  EXPECT_EQ(fileKind("\n# x\n  faultline case 1\n"), FileKind::Case);
  EXPECT_EQ(fileKind("faultline case 2\n"), FileKind::Case);
  EXPECT_EQ(fileKind("faultline tape 1\n"), FileKind::Tape);
  EXPECT_EQ(fileKind("# dump\ngraph(%x : Tensor):\n"), FileKind::Ir);
  EXPECT_EQ(fileKind("graph (%x : Tensor):\n"), FileKind::Ir);
  EXPECT_EQ(fileKind("# param w: float32[2]\ndef f(x):\n  return x\n"), FileKind::TorchScript);
  EXPECT_EQ(fileKind("import torch\n"), FileKind::TorchScript);
  EXPECT_EQ(fileKind("@torch.jit.script\ndef f(x):\n"), FileKind::TorchScript);
  EXPECT_EQ(fileKind(std::string_view("PK\3\4rest", 8)), FileKind::Archive);
  EXPECT_EQ(fileKind(""), FileKind::Unknown);
  EXPECT_EQ(fileKind("define me\n"), FileKind::Unknown);
  EXPECT_EQ(fileKind("# Faultline\n\nWords.\n"), FileKind::Unknown);
  EXPECT_EQ(fileKind("\x7f"
                     "ELF"),
            FileKind::Unknown);
}

}  // namespace
}  // namespace faultline
