// Parts written alike are compiled once, and nothing else is taken for alike.
#include "engine/runtime/part_cache.h"

#include <gtest/gtest.h>

#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

std::shared_ptr<Graph> layers(size_t count, const std::string& op = "aten::relu") {
  std::string ir = "graph(%x : Tensor";
  for (size_t i = 0; i < count; ++i) ir += fmt::format(", %w{} : Tensor", i);
  ir += "):\n";
  std::string last = "x";
  for (size_t i = 0; i < count; ++i) {
    ir += fmt::format("  %m{0} : Tensor = aten::mm(%{1}, %w{0})\n  %r{0} : Tensor = {2}(%m{0})\n", i, last,
                      i == 1 ? op : "aten::relu");
    last = fmt::format("r{}", i);
  }
  return parse(ir + fmt::format("  return (%{})", last));
}

size_t distinctBackwards(const CompiledGraph& compiled) {
  std::set<const Graph*> graphs;
  for (const CompiledPiece& piece : compiled.pieces()) graphs.insert(piece.backward.get());
  return graphs.size();
}

TEST(PartCache, LayersThatAreAlikeAreOnePart) {
  auto inputs = [] {
    torch::jit::Stack stack{values({3, 3}, 1)};
    for (int i = 0; i < 5; ++i) stack.emplace_back(leaf({3, 3}, 2 + i));
    return stack;
  };
  for (const auto& [op, expected] :
       std::vector<std::pair<std::string, size_t>>{{"aten::relu", 2}, {"aten::tanh", 3}}) {
    SCOPED_TRACE(op);
    const auto graph = layers(5, op);
    const auto plan = planBreaks(*graph, BreakPolicy::every(2));
    ASSERT_TRUE(plan);
    CompileOptions sharing;
    sharing.share_equal_parts = true;
    const auto compiled = compile(graph, *plan, sharing);
    ASSERT_TRUE(compiled);
    // The first takes x, of which nobody says that it requires grad.
    EXPECT_EQ(distinctBackwards(*compiled), expected);
    EXPECT_EQ(distinctBackwards(*compile(graph, *plan)), 5u);
    for (size_t k = 0; k < 5; ++k) {
      EXPECT_EQ(compiled->pieces()[k].ops, compile(graph, *plan)->pieces()[k].ops);
    }
    for (Backward::Kind kind : {Backward::Kind::All, Backward::Kind::Double}) {
      EXPECT_EQ(difference(observe(interpreter(graph), inputs, {kind, 0}),
                           observe(lean(*compiled), inputs, {kind, 0})),
                "");
    }
  }
}

std::shared_ptr<const RunnablePart> get(PartCache& cache, const std::string& ir,
                                        const InputMask& expected = {true, true},
                                        Guard guard = Guard::Variants, bool compile = true,
                                        const InputMask& open = {}) {
  return cache.get(parse(ir), compile, expected, guard, open);
}

TEST(PartCache, WhatDiffersInAnyWayIsNotShared) {
  const std::string one = R"(
graph(%x : Tensor, %y : Tensor):
  %c : float = prim::Constant[value=2.]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::mul(%a, %c)
  return (%b))";
  auto with = [&](const std::string& from, const std::string& to) {
    std::string text = one;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  PartCache cache;
  const auto first = get(cache, one);
  ASSERT_TRUE(first->compiled());
  EXPECT_EQ(get(cache, with("%a : Tensor = aten::mul(%x, %y)", "%a : Tensor = aten::mul(%x, %y)")), first);
  EXPECT_EQ(get(cache, R"(
graph(%other : Tensor, %names : Tensor):
  %5 : float = prim::Constant[value=2.]()
  %6 : Tensor = aten::mul(%other, %names)
  %7 : Tensor = aten::mul(%6, %5)
  return (%7))"),
            first);
  EXPECT_NE(get(cache, with("value=2.", "value=3.")), first);
  EXPECT_NE(get(cache, with("aten::mul(%x, %y)", "aten::mul(%y, %x)")), first);
  EXPECT_NE(get(cache, with("aten::mul(%x, %y)", "aten::mul(%x, %x)")), first);
  EXPECT_NE(get(cache, with("return (%b)", "return (%a)")), first);
  EXPECT_NE(get(cache, with("return (%b)", "return (%b, %a)")), first);
  EXPECT_NE(get(cache, with("%x : Tensor", "%x : Float(*, *)")), first);
  EXPECT_NE(get(cache, one, {true, false}), first);
  EXPECT_NE(get(cache, one, {true, true}, Guard::Flags), first);
  EXPECT_NE(get(cache, one, {true, true}, Guard::Flags, true, {false, true}),
            get(cache, one, {true, true}, Guard::Flags, true, {true, false}));
  EXPECT_EQ(get(cache, one), first);
}

TEST(PartCache, EagerPartsAndTensorConstantsAreNeverShared) {
  PartCache cache;
  const std::string plain = R"(
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  return (%a))";
  EXPECT_NE(get(cache, plain, {true, true}, Guard::Variants, false),
            get(cache, plain, {true, true}, Guard::Variants, false));
  const std::string constant = R"(
graph(%x : Tensor, %y : Tensor):
  %c : Tensor = prim::Constant[value={2.}]()
  %a : Tensor = aten::mul(%x, %c)
  return (%a))";
  EXPECT_NE(get(cache, constant), get(cache, constant));
}

}  // namespace
}  // namespace faultline::test
