#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include "faultline/graph_break.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* chain = R"(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::sin(%a)
  %c : Tensor = aten::add(%b, %w, %one)
  %d : Tensor = aten::sin(%c)
  %e : Tensor = aten::exp(%d)
  return (%e))";

BreakPlan planOf(const char* ir, const BreakPolicy& policy) {
  auto plan = planBreaks(*parse(ir), policy);
  EXPECT_TRUE(plan) << plan.error().str();
  return plan ? *plan : BreakPlan{};
}

std::vector<std::vector<std::string>> opsOf(const BreakPlan& plan) {
  std::vector<std::vector<std::string>> ops;
  for (const PlannedPiece& piece : plan.pieces) {
    ops.push_back(piece.ops);
  }
  return ops;
}

TEST(Plan, NoneIsOnePiece) {
  EXPECT_THAT(opsOf(planOf(chain, BreakPolicy::none())),
              ElementsAre(ElementsAre("mul", "sin", "add", "sin_1", "exp")));
}

TEST(Plan, EveryCountsOpsAndNotConstants) {
  const BreakPlan plan = planOf(chain, BreakPolicy::every(2));
  EXPECT_THAT(opsOf(plan),
              ElementsAre(ElementsAre("mul", "sin"), ElementsAre("add", "sin_1"), ElementsAre("exp")));
  ASSERT_EQ(plan.cuts.size(), 2u);
  EXPECT_EQ(plan.cuts[0].after, "sin");
  EXPECT_EQ(plan.cuts[0].reason, "every 2 ops");
  EXPECT_THAT(plan.refused, IsEmpty());
}

TEST(Plan, EveryMakesNoEmptyPieceAtTheEnd) {
  EXPECT_EQ(planOf(chain, BreakPolicy::every(5)).pieces.size(), 1u);
  EXPECT_EQ(planOf(chain, BreakPolicy::every(1)).pieces.size(), 5u);
  EXPECT_EQ(planOf(chain, BreakPolicy::every(1)).refused.size(), 0u);
  EXPECT_EQ(planOf(chain, BreakPolicy::every(100)).pieces.size(), 1u);
}

TEST(Plan, AfterTakesNamesInAnyOrderAndOnce) {
  const BreakPlan plan = planOf(chain, BreakPolicy::after({"sin_1", "mul", "sin_1"}));
  EXPECT_THAT(opsOf(plan),
              ElementsAre(ElementsAre("mul"), ElementsAre("sin", "add", "sin_1"), ElementsAre("exp")));
  EXPECT_EQ(plan.cuts[1].reason, "asked for after sin_1");
}

TEST(Plan, SaysWhatCrosses) {
  const BreakPlan plan = planOf(chain, BreakPolicy::after({"sin"}));
  EXPECT_THAT(plan.pieces[0].inputs, ElementsAre("x", "w"));
  EXPECT_THAT(plan.pieces[0].outputs, ElementsAre("sin"));
  EXPECT_THAT(plan.pieces[1].inputs, ElementsAre("w", "sin"));
  EXPECT_THAT(plan.pieces[1].outputs, ElementsAre("exp"));
}

TEST(Plan, AParameterIsReadyInItsEarliestPiece) {
  const BreakPlan plan = planOf(R"(
graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), %w : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu), %u : Double(3, strides=[1], requires_grad=1, device=cpu), %v : Tensor):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %n : int = aten::size(%u, %zero)
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::mul(%a, %u)
  %c : Tensor = aten::mul(%b, %w)
  %d : Tensor = aten::mul(%c, %v)
  return (%d, %n))",
                                BreakPolicy::after({"mul", "mul_1"}));
  ASSERT_EQ(plan.pieces.size(), 3u);
  EXPECT_THAT(plan.pieces[0].parameters, ElementsAre("w"));
  EXPECT_THAT(plan.pieces[1].parameters, ElementsAre("u")) << "its size is no gradient";
  EXPECT_THAT(plan.pieces[2].parameters, ElementsAre("v"));
  EXPECT_EQ(plan.pieces[0].bytes, 24);
  EXPECT_EQ(plan.pieces[1].bytes, 24);
  EXPECT_EQ(plan.pieces[2].bytes, 0) << "no complete type";
}

// What packs a parameter up makes no gradient: the op that takes it out of there does.
TEST(Plan, PackingAParameterUpIsNoUseOfIt) {
  const char* program = R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %zero : int = prim::Constant[value=0]()
  %list : Tensor[] = prim::ListConstruct(%w, %x)
  %pair : (Tensor, Tensor) = prim::TupleConstruct(%v, %w)
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::cos(%a)
  %first : Tensor, %second : Tensor = prim::TupleUnpack(%pair)
  %c : Tensor = aten::mul(%b, %first)
  %d : Tensor = aten::sin(%c)
  %e : Tensor = aten::stack(%list, %zero)
  %f : Tensor = aten::mul(%e, %d)
  return (%f))";
  const BreakPlan plan = planOf(program, BreakPolicy::after({"cos", "sin_1"}));
  ASSERT_EQ(plan.pieces.size(), 3u);
  EXPECT_THAT(plan.pieces[0].parameters, ElementsAre("x"));
  EXPECT_THAT(plan.pieces[1].parameters, ElementsAre("v"));
  EXPECT_THAT(plan.pieces[2].parameters, ElementsAre("w"));
  CompareOptions options;
  options.stitched = false;
  auto inputs = [] { return torch::jit::Stack{leaf({2, 2}, 1), leaf({2, 2}, 2), leaf({2, 2}, 3)}; };
  EXPECT_EQ(compareAll(parse(program), inputs, {BreakPolicy::after({"cos", "sin_1"})}, options), "");
}

TEST(Plan, UnknownNameNamesTheNearest) {
  auto plan = planBreaks(*parse(chain), BreakPolicy::after({"sin_2"}));
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("'sin_2'"));
  EXPECT_THAT(plan.error().message, HasSubstr("'sin_1'"));
}

TEST(Plan, NoOpsAPieceCannotBeMeant) { EXPECT_FALSE(planBreaks(*parse(chain), BreakPolicy::every(0))); }

TEST(Plan, ProfileNodesAreNotInTheWay) {
  EXPECT_THAT(opsOf(planOf(R"(
graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Tensor](%x)
  %a : Tensor = aten::sin(%p)
  %q : Tensor = prim::profile[profiled_type=Tensor](%a)
  %b : Tensor = aten::cos(%q)
  return (%b))",
                           BreakPolicy::after({"sin"}))),
              ElementsAre(ElementsAre("sin"), ElementsAre("cos")));
}

TEST(Plan, SaysWhyOpsAndPiecesAreEager) {
  const BreakPlan plan = planOf(R"(
graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %base : float = prim::Constant[value=2.]()
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::pow(%base, %a)
  %c : Tensor = aten::sin(%b)
  %d : Tensor = aten::prod(%c, %none)
  return (%d))",
                                BreakPolicy::after({"sin"}));
  ASSERT_EQ(plan.pieces.size(), 2u);
  EXPECT_EQ(plan.pieces[0].eager_reason, "");
  ASSERT_EQ(plan.pieces[0].eager_ops.size(), 1u);
  EXPECT_EQ(plan.pieces[0].eager_ops[0].op, "pow");
  EXPECT_THAT(plan.pieces[0].eager_ops[0].reason, HasSubstr("base 0"));
  EXPECT_THAT(plan.pieces[1].eager_reason, HasSubstr("aten::prod has no formula"));
}

void identity(torch::jit::Stack&) {}

torch::jit::RegisterOperators unknown_effects(
    {torch::jit::Operator("faultline_test::opaque(Tensor x) -> Tensor", identity,
                          c10::AliasAnalysisKind::CONSERVATIVE),
     torch::jit::Operator("faultline_test::plain(Tensor x) -> Tensor", identity,
                          c10::AliasAnalysisKind::FROM_SCHEMA)});

// An op that keeps its place in a graph that is cut before it.
struct BarrierRow {
  const char* graph;
  const char* barrier;  // its name
  const char* reason;
};

const BarrierRow barrier_rows[] = {
    {R"(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::add_(%a, %w, %one)
  %c : Tensor = aten::cos(%b)
  return (%c))",
     "add_", "writes in place"},
    {R"(
graph(%x : Tensor, %m : Tensor, %v : Tensor):
  %none : NoneType = prim::Constant()
  %on : bool = prim::Constant[value=1]()
  %small : float = prim::Constant[value=0.1]()
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::batch_norm(%a, %none, %none, %m, %v, %on, %small, %small, %on)
  return (%b))",
     "batch_norm", "writes in place"},
    {R"(
graph(%x : Tensor, %flag : bool):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = prim::If(%flag)
    block0():
      %c : Tensor = aten::zero_(%a)
      -> (%c)
    block1():
      -> (%a)
  return (%b))",
     "If", "zero_ writes in place"},
    {R"(
graph(%x : Tensor):
  %a : Tensor = aten::sin(%x)
  %list : Tensor[] = prim::ListConstruct(%x)
  %more : Tensor[] = aten::append(%list, %a)
  %zero : int = prim::Constant[value=0]()
  %c : Tensor = aten::cat(%list, %zero)
  return (%c))",
     "append", "writes in place"},
    {R"(
graph(%x : Tensor):
  %off : bool = prim::Constant[value=0]()
  %a : Tensor = aten::sin(%x)
  aten::set_grad_enabled(%off)
  %b : Tensor = aten::cos(%a)
  return (%b))",
     "set_grad_enabled", "changes the grad mode"},
    {R"(
graph(%x : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = faultline_test::opaque(%a)
  return (%b))",
     "opaque", "not known"},
};

TEST(Plan, AnOpThatKeepsItsPlaceRunsEagerlyAndForbidsNoCut) {
  for (const BarrierRow& row : barrier_rows) {
    SCOPED_TRACE(row.graph);
    const BreakPlan plan = planOf(row.graph, BreakPolicy::after({"sin"}));
    EXPECT_THAT(plan.refused, IsEmpty());
    ASSERT_EQ(plan.pieces.size(), 2u);
    EXPECT_EQ(plan.pieces[0].eager_reason, "");
    bool found = false;
    for (const EagerOp& op : plan.pieces[1].eager_ops) {
      if (op.op == row.barrier) {
        EXPECT_THAT(op.reason, HasSubstr(row.reason));
        found = true;
      }
    }
    EXPECT_TRUE(found);
  }
}

TEST(Plan, AViewIsCompiledWhereItsMemoryIsNotWritten) {
  const char* program = R"(
graph(%x : Tensor, %w : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::transpose(%a, %zero, %one)
  %c : Tensor = aten::cos(%b)
  %d : Tensor = {}
  %e : Tensor = aten::neg(%d)
  return (%c, %e))";
  auto reasonOf = [&](const char* last) {
    const BreakPlan plan = planOf(fmt::format(fmt::runtime(program), last).c_str(), BreakPolicy::none());
    for (const EagerOp& op : plan.pieces[0].eager_ops) {
      if (op.op == "transpose") {
        return op.reason;
      }
    }
    return std::string();
  };
  EXPECT_EQ(reasonOf("aten::add(%w, %w, %one)"), "");
  EXPECT_EQ(reasonOf("aten::exp_(%w)"), "") << "other memory";
  EXPECT_THAT(reasonOf("aten::exp_(%a)"), HasSubstr("written in place"));
  EXPECT_THAT(reasonOf("aten::exp_(%b)"), HasSubstr("written in place"));
}

// A graph with a cut that is not made as asked, for the row's reason, and one that is.
struct BreakRow {
  const char* code;
  const char* graph;
  const char* refused;  // policies
  const char* accepted;
  const char* at;
  const char* instead;
};

const char* two_products = R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::mul(%a, %v)
  return (%b))";

const BreakRow break_rows[] = {
    {"inside_block", R"(
graph(%x : Tensor, %flag : bool):
  %b : Tensor = prim::If(%flag)
    block0():
      %c : Tensor = aten::neg(%x)
      -> (%c)
    block1():
      -> (%x)
  %d : Tensor = aten::sin(%b)
  return (%d))",
     "kinds neg", "inside kinds neg", "neg", "If"},
    {"constant", R"(
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %one, %one)
  %b : Tensor = aten::sin(%a)
  return (%b))",
     "after Constant", "after add", "Constant", ""},
    {"nothing_after", R"(
graph(%x : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::cos(%a)
  %one : int = prim::Constant[value=1]()
  return (%b, %one))",
     "after cos", "after sin", "cos", ""},
    {"block_ends", R"(
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %h : Tensor):
      %a : Tensor = aten::sin(%h)
      %b : Tensor = aten::cos(%a)
      -> (%true, %b)
  return (%y))",
     "after cos", "after sin", "cos", ""},
    {"too_few_ops", two_products, "balanced 3", "balanced 2", "mul_1", ""},
    {"one_op", two_products, "parameters", "parameters v", "mul", ""},
    {"nothing_before", R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::mul(%a, %w)
  return (%b))",
     "parameters x", "parameters w", "sin", ""},
    {"no_gradient", R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::detach(%w)
  %c : Tensor = aten::mul(%a, %b)
  %d : Tensor = aten::mul(%c, %x)
  return (%d))",
     "parameters w", "after sin", "w", ""},
    {"unit_ended", R"(
graph(%x : Tensor, %w : Tensor, %v : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::mul(%a, %v)
  %c : Tensor = aten::mul(%b, %w)
  return (%c))",
     "shards w v", "after mul", "mul_2", ""},
};

TEST(Plan, EachBreakReasonRefusesWhatItShouldAndNothingElse) {
  std::set<std::string> shown;
  for (const BreakRow& row : break_rows) {
    SCOPED_TRACE(row.graph);
    const BreakPlan refused = planOf(row.graph, *BreakPolicy::read(row.refused));
    ASSERT_EQ(refused.refused.size(), 1u);
    EXPECT_EQ(refused.refused[0].code, row.code);
    EXPECT_EQ(refused.refused[0].at, row.at);
    EXPECT_EQ(refused.refused[0].instead, row.instead);
    EXPECT_THAT(refused.refused[0].reason, testing::Not(HasSubstr("{}")));
    const BreakPlan accepted = planOf(row.graph, *BreakPolicy::read(row.accepted));
    EXPECT_THAT(accepted.refused, IsEmpty());
    EXPECT_EQ(accepted.pieces.size(), 2u);
    shown.insert(row.code);
  }
  const std::set<std::string> codes = {
#define FAULTLINE_BREAK(code, sentence) #code,
#include "engine/graph_break/breaks.def"
#undef FAULTLINE_BREAK
  };
  EXPECT_EQ(shown, codes);
}

TEST(Compile, RefusesAPlanOfAnotherGraph) {
  auto plan = planBreaks(*parse(chain), BreakPolicy::every(2));
  ASSERT_TRUE(plan);
  EXPECT_FALSE(compile(parse(break_rows[0].graph), *plan));
  EXPECT_FALSE(compile(parse(chain), BreakPlan{}));
  CompileOptions options;
  options.force_eager = {3};
  EXPECT_FALSE(compile(parse(chain), *plan, options));
}

TEST(Compile, LeavesTheGraphAlone) {
  auto graph = parse(chain);
  const std::string before = graph->toString();
  auto plan = planBreaks(*graph, BreakPolicy::every(2));
  ASSERT_TRUE(plan);
  auto compiled = compile(graph, *plan);
  ASSERT_TRUE(compiled);
  torch::jit::Stack stack = {leaf({3}, 1), leaf({3}, 2)};
  compiled->run(stack);
  compiled->stitchedGraph();
  EXPECT_EQ(graph->toString(), before);
}

TEST(Compile, OnePieceForcedEagerLeavesTheOthersCompiled) {
  auto graph = parse(chain);
  auto plan = planBreaks(*graph, BreakPolicy::every(2));
  CompileOptions options;
  options.force_eager = {1};
  auto compiled = compile(graph, *plan, options);
  ASSERT_TRUE(compiled);
  using Kind = CompiledPiece::Kind;
  ASSERT_EQ(compiled->pieces().size(), 3u);
  EXPECT_EQ(compiled->pieces()[0].kind, Kind::Compiled);
  EXPECT_EQ(compiled->pieces()[1].kind, Kind::Eager);
  EXPECT_EQ(compiled->pieces()[1].reason, "asked for");
  EXPECT_EQ(compiled->pieces()[1].backward, nullptr);
  EXPECT_EQ(compiled->pieces()[2].kind, Kind::Compiled);
  EXPECT_NE(compiled->pieces()[2].backward, nullptr);
  auto inputs = [] { return torch::jit::Stack{leaf({3}, 1), leaf({3}, 2)}; };
  EXPECT_EQ(difference(observe(interpreter(graph), inputs, {}), observe(lean(*compiled), inputs, {})), "");
}

}  // namespace
}  // namespace faultline::test
