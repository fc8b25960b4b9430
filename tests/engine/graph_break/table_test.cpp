#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faultline/graph_break.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    result.push_back(line);
  }
  return result;
}

size_t widest(const std::string& table) {
  size_t width = 0;
  for (const std::string& line : lines(table)) {
    width = std::max(width, line.size());
  }
  return width;
}

TEST(Table, HasTheFiveColumnsOfPrintTabular) {
  EXPECT_EQ(graphTable(*parse(R"(
graph(%x : Tensor, %w : Tensor):
  %two : int = prim::Constant[value=2]()
  %half : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::add(%x, %w, %two)
  %b : Tensor = aten::mul(%a, %half)
  return (%b))")),
            "opcode         name    target            args        kwargs\n"
            "-------------  ------  ----------------  ----------  ------------\n"
            "placeholder    x       x                 ()          {}\n"
            "placeholder    w       w                 ()          {}\n"
            "call_function  add     aten::add.Tensor  (x, w)      {'alpha': 2}\n"
            "call_function  mul     aten::mul.Scalar  (add, 0.5)  {}\n"
            "output         output  output            (mul,)      {}\n");
}

TEST(Table, WrapsLongCellsAtTheWidth) {
  std::string ir = "graph(";
  std::string names;
  for (int i = 0; i < 20; ++i) {
    ir += std::string(i ? ", " : "") + "%activation_" + std::to_string(i) + " : Tensor";
    names += std::string(i ? ", " : "") + "%activation_" + std::to_string(i);
  }
  ir += "):\n  %list : Tensor[] = prim::ListConstruct(" + names +
        ")\n  %zero : int = prim::Constant[value=0]()\n";
  ir += "  %c : Tensor = aten::cat(%list, %zero)\n  return (%c)";
  for (size_t width : {60, 80, 120}) {
    const std::string table = graphTable(*parse(ir), width);
    EXPECT_LE(widest(table), width) << table;
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(table, HasSubstr("activation_" + std::to_string(i)));
    }
  }
}

TEST(Table, KeepsWordsAndNumbersWhole) {
  const std::string table = graphTable(*parse(R"(
graph(%x : Tensor, %norm1_scale : Tensor, %norm1_shift : Tensor):
  %dim : int = prim::Constant[value=16]()
  %dims : int[] = prim::ListConstruct(%dim)
  %eps : float = prim::Constant[value=1.0000000000000001e-05]()
  %on : bool = prim::Constant[value=1]()
  %root : float = prim::Constant[value=2.8284271247461903]()
  %two : int = prim::Constant[value=2]()
  %a : Tensor = aten::layer_norm(%x, %dims, %norm1_scale, %norm1_shift, %eps, %on)
  %b : Tensor = aten::div(%a, %root)
  %c : Tensor = aten::add(%b, %x, %two)
  return (%c))"));
  EXPECT_LE(widest(table), 80u) << table;
  for (const char* whole : {"norm1_scale,", "norm1_shift,", "2.8284271247461903)"}) {
    EXPECT_THAT(table, HasSubstr(whole)) << table;
  }
}

TEST(Table, ShowsBlocksIndented) {
  const std::string table = graphTable(*parse(R"(
graph(%x : Tensor, %flag : bool):
  %b : Tensor = prim::If(%flag)
    block0():
      %c : Tensor = aten::neg(%x)
      -> (%c)
    block1():
      -> (%x)
  return (%b))"));
  EXPECT_THAT(table, HasSubstr("call_function    If      prim::If   (flag,)  {}\n"
                               "  call_function  neg     aten::neg  (x,)     {}\n"
                               "  yield                             (neg,)   {}\n"
                               "  yield                             (x,)     {}\n"))
      << table;
}

TEST(Table, ConstantsStandInTheArguments) {
  const std::string table = graphTable(*parse(R"(
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %on : bool = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %size : int[] = prim::ListConstruct(%three, %three)
  %dims : int[] = prim::Constant[value=[0, 1]]()
  %a : Tensor = aten::expand(%x, %size, %on)
  %b : Tensor = aten::mean(%a, %dims, %on, %none)
  return (%b))"));
  EXPECT_THAT(table, HasSubstr("(x, [3, 3])"));
  EXPECT_THAT(table, HasSubstr("{'implicit':"));
  EXPECT_THAT(table, HasSubstr("(expand, [0, 1], True)"));
  EXPECT_THAT(table, HasSubstr("{'dtype': None}"));
}

TEST(Table, StitchedGraphCallsItsPieces) {
  auto graph = parse(R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%a)
  %c : Tensor = aten::exp(%b)
  return (%c))");
  auto plan = planBreaks(*graph, BreakPolicy::after({"sin"}));
  auto compiled = compile(graph, *plan);
  ASSERT_TRUE(compiled);
  const std::string table = graphTable(*compiled->stitchedGraph());
  EXPECT_THAT(table, HasSubstr("call_module  piece0  piece0  (x, w)     {}"));
  EXPECT_THAT(table, HasSubstr("call_module  piece1  piece1  (piece0,)  {}"));
  EXPECT_LE(widest(table), 80u);
}

}  // namespace
}  // namespace faultline::test
