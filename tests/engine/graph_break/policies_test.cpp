// Where each policy cuts, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/jit.h>

#include "faultline/graph_break.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Three layers with weights of 64, 16 and 4 bytes.
const char* layers = R"(
graph(%x : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu),
      %a_w : Float(4, 4, strides=[4, 1], requires_grad=1, device=cpu),
      %b_w : Float(4, strides=[1], requires_grad=1, device=cpu),
      %b_b : Float(1, strides=[1], requires_grad=1, device=cpu)):
  %one : int = prim::Constant[value=1]()
  %h : Tensor = aten::mm(%x, %a_w)
  %r : Tensor = aten::relu(%h)
  %s : Tensor = aten::mul(%r, %b_w)
  %t : Tensor = aten::sin(%s)
  %u : Tensor = aten::add(%t, %b_b, %one)
  %v : Tensor = aten::relu(%u)
  return (%v))";

using Ops = std::vector<std::vector<std::string>>;

Ops piecesOf(const BreakPlan& plan) {
  Ops ops;
  for (const PlannedPiece& piece : plan.pieces) {
    ops.push_back(piece.ops);
  }
  return ops;
}

BreakPlan planned(const std::shared_ptr<Graph>& graph, const BreakPolicy& policy) {
  auto plan = planBreaks(*graph, policy);
  EXPECT_TRUE(plan) << plan.error().str();
  return plan ? *plan : BreakPlan{};
}

BreakPlan planned(const BreakPolicy& policy) { return planned(parse(layers), policy); }

std::string refusal(const BreakPolicy& policy) {
  auto plan = planBreaks(*parse(layers), policy);
  return plan ? "planned" : plan.error().message;
}

std::string codes(const BreakPlan& plan) {
  std::string text;
  for (const RefusedCut& cut : plan.refused) {
    text += cut.code + "@" + cut.at + (cut.instead.empty() ? "" : ">" + cut.instead) + " ";
  }
  return text;
}

TEST(Policies, BalancedByOps) {
  using Weight = BreakPolicy::Weight;
  EXPECT_EQ(piecesOf(planned(BreakPolicy::balanced(2, Weight::Ops))),
            (Ops{{"mm", "relu", "mul"}, {"sin", "add", "relu_1"}}));
  EXPECT_EQ(piecesOf(planned(BreakPolicy::balanced(4, Weight::Ops))).size(), 4u);
  const BreakPlan all = planned(BreakPolicy::balanced(9, Weight::Ops));
  EXPECT_EQ(all.pieces.size(), 6u);
  EXPECT_EQ(codes(all), "too_few_ops@relu_1 ");
  EXPECT_EQ(refusal(BreakPolicy::balanced(0, Weight::Ops)), "there cannot be 0 pieces");
}

TEST(Policies, BalancedByBytesLeavesWhatWeighsNothingInFront) {
  const BreakPlan plan = planned(BreakPolicy::balanced(2, BreakPolicy::Weight::Bytes));
  EXPECT_EQ(piecesOf(plan), (Ops{{"mm", "relu"}, {"mul", "sin", "add", "relu_1"}}));
  EXPECT_EQ(plan.pieces[0].bytes, 64);
  EXPECT_EQ(plan.pieces[1].bytes, 20);
  EXPECT_EQ(piecesOf(planned(BreakPolicy::balanced(3, BreakPolicy::Weight::Bytes))),
            (Ops{{"mm", "relu"}, {"mul", "sin"}, {"add", "relu_1"}}));
}

TEST(Policies, BalancedByWeightsHasTheLightestHeaviestPiece) {
  const std::vector<std::string> names = {"mm", "relu", "mul", "sin", "add", "relu_1"};
  uint64_t state = 7;
  for (int round = 0; round < 200; ++round) {
    std::map<std::string, double> weights;
    for (const std::string& name : names) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      weights[name] = static_cast<double>((state >> 33) % 10);
    }
    weights["mm"] += 1;
    for (size_t pieces = 1; pieces <= 4; ++pieces) {
      const BreakPlan plan = planned(BreakPolicy::balanced(pieces, weights));
      ASSERT_EQ(plan.pieces.size(), pieces);
      auto heaviest = [&](const std::vector<size_t>& ends) {
        double most = 0;
        size_t begin = 0;
        for (size_t end : ends) {
          double sum = 0;
          for (; begin < end; ++begin) {
            sum += weights[names[begin]];
          }
          most = std::max(most, sum);
        }
        return most;
      };
      std::vector<size_t> ends;
      for (const PlannedPiece& piece : plan.pieces) {
        ends.push_back((ends.empty() ? 0 : ends.back()) + piece.ops.size());
      }
      double best = 1e9;  // over all divisions
      for (unsigned mask = 0; mask < 32; ++mask) {
        std::vector<size_t> division;
        for (size_t i = 0; i < 5; ++i) {
          if (mask & (1u << i)) {
            division.push_back(i + 1);
          }
        }
        division.push_back(6);
        if (division.size() == pieces) {
          best = std::min(best, heaviest(division));
        }
      }
      ASSERT_NEAR(heaviest(ends), best, 1e-6) << "round " << round << ", " << pieces << " pieces";
    }
  }
  EXPECT_THAT(refusal(BreakPolicy::balanced(2, {{"mmm", 1}})), HasSubstr("no op is named 'mmm'"));
  EXPECT_THAT(refusal(BreakPolicy::balanced(2, {{"mm", -1}})), HasSubstr("cannot weigh"));
}

TEST(Policies, TimesAreMeasuredOpByOp) {
  auto graph = parse(layers);
  const torch::jit::Stack inputs = {values({4, 4}, 1), leaf({4, 4}, 2), leaf({4}, 3), leaf({1}, 4)};
  auto times = measureOps(*graph, inputs);
  ASSERT_TRUE(times) << times.error().str();
  EXPECT_EQ(times->size(), 6u);
  for (const auto& [name, time] : *times) {
    EXPECT_GT(time, 0) << name;
  }
  const BreakPlan plan = planned(BreakPolicy::balancedByTime(3, *times));
  EXPECT_EQ(plan.pieces.size(), 3u);
  EXPECT_THAT(plan.cuts[0].reason,
              testing::MatchesRegex("3 pieces by measured time: [0-9]+ of [0-9]+ us here"));
  EXPECT_THAT(refusal(*BreakPolicy::read("balanced 2 time")), HasSubstr("nothing was measured"));
  auto misfit = measureOps(*graph, {values({4, 4}, 1), leaf({3, 4}, 2), leaf({4}, 3), leaf({1}, 4)});
  ASSERT_FALSE(misfit);
  EXPECT_THAT(misfit.error().message, HasSubstr("an op throws"));
  EXPECT_FALSE(measureOps(*graph, {}));
}

TEST(Policies, ParametersBeginAPieceWhereTheyAreUsedFirst) {
  const BreakPlan all = planned(BreakPolicy::parameters());
  EXPECT_EQ(piecesOf(all), (Ops{{"mm", "relu"}, {"mul", "sin"}, {"add", "relu_1"}}));
  EXPECT_THAT(all.refused, IsEmpty());
  const BreakPlan one = planned(BreakPolicy::parameters({"b_b"}));
  EXPECT_EQ(piecesOf(one), (Ops{{"mm", "relu", "mul", "sin"}, {"add", "relu_1"}}));
  EXPECT_EQ(one.cuts.at(0).reason, "gradient of b_b");
  EXPECT_EQ(refusal(BreakPolicy::parameters({"b_c"})), "no parameter is named 'b_c'; the nearest is 'b_w'");
  EXPECT_THAT(refusal(BreakPolicy::parameters({"x"})), HasSubstr("no parameter is named 'x'"));
}

TEST(Policies, ParametersOfOneOpCannotBeToldApart) {
  auto graph = parse(R"(
graph(%x : Tensor(requires_grad=0), %w : Tensor, %b : Tensor, %idle : Tensor):
  %a : Tensor = aten::sin(%x)
  %y : Tensor = aten::linear(%a, %w, %b)
  %gone : Tensor = aten::detach(%idle)
  %z : Tensor = aten::mul(%y, %gone)
  return (%z))");
  const BreakPlan plan = planned(graph, BreakPolicy::parameters());
  EXPECT_EQ(piecesOf(plan), (Ops{{"sin"}, {"linear", "detach", "mul"}}));
  EXPECT_EQ(codes(plan), "no_gradient@idle one_op@linear ");
}

TEST(Policies, KindsAndPredicates) {
  EXPECT_EQ(piecesOf(planned(BreakPolicy::kinds({"relu"}))),
            (Ops{{"mm", "relu"}, {"mul", "sin", "add", "relu_1"}}));
  EXPECT_EQ(codes(planned(BreakPolicy::kinds({"aten::relu"}))), "nothing_after@relu_1 ");
  EXPECT_EQ(refusal(BreakPolicy::kinds({"gelu"})), "the graph has no op of the kind 'gelu'");
  size_t asked = 0;
  auto many_uses = [&](const Node& node) {
    ++asked;
    return node.kind() == c10::aten::mul || node.kind() == c10::aten::sin;
  };
  const BreakPlan plan = planned(BreakPolicy::predicate(many_uses));
  EXPECT_EQ(piecesOf(plan), (Ops{{"mm", "relu", "mul"}, {"sin"}, {"add", "relu_1"}}));
  EXPECT_EQ(asked, 6u);
  EXPECT_EQ(refusal(BreakPolicy::predicate({})), "the predicate is empty");
}

TEST(Policies, ShardsAreUnitsOfParameters) {
  const BreakPlan by_name = planned(BreakPolicy::shards());
  EXPECT_EQ(piecesOf(by_name), (Ops{{"mm", "relu"}, {"mul", "sin", "add", "relu_1"}}));
  EXPECT_EQ(by_name.cuts.at(0).reason, "unit 1: b_w, b_b");
  // a_w and b_b together: the unit's piece has ended when b_b is used.
  const BreakPlan split = planned(BreakPolicy::shards({{"a_w", "b_b"}, {"b_w"}}));
  EXPECT_EQ(piecesOf(split), piecesOf(by_name));
  EXPECT_EQ(codes(split), "unit_ended@add ");
  EXPECT_EQ(refusal(BreakPolicy::shards({{"a_w"}, {"a_w"}})), "a_w stands in two units");
  // What one op is the first to use is one unit, whatever it is called.
  auto linear = parse(R"(
graph(%x : Tensor(requires_grad=0), %w0 : Tensor, %b0 : Tensor, %w1 : Tensor, %b1 : Tensor):
  %a : Tensor = aten::linear(%x, %w0, %b0)
  %y : Tensor = aten::linear(%a, %w1, %b1)
  return (%y))");
  const BreakPlan plan = planned(linear, BreakPolicy::shards());
  EXPECT_EQ(piecesOf(plan), (Ops{{"linear"}, {"linear_1"}}));
  EXPECT_EQ(codes(plan), "");
}

TEST(Policies, MarkersAreCommentsInTheSource) {
  auto unit = torch::jit::compile(R"(
def f(x, w, n: int):
    h = x * w
    # break
    h = torch.relu(h)  # break
    for i in range(n):
        h = torch.sin(h)
        # break
        h = torch.cos(h)
    # a break
    return h + w
)");
  auto graph = torch::jit::toGraphFunction(unit->get_function("f")).graph();
  const BreakPlan plan = planned(graph, BreakPolicy::markers());
  EXPECT_EQ(piecesOf(plan), (Ops{{"mul"}, {"relu"}, {"sin"}, {"cos"}, {"add"}}));
  EXPECT_THAT(plan.cuts.at(0).reason, HasSubstr("marked in line"));
  EXPECT_THAT(plan.cuts.at(2).reason, HasSubstr("marked in line"));
  EXPECT_EQ(plan.pieces.at(2).block, "body of Loop");
  EXPECT_EQ(codes(plan), "");
  EXPECT_THAT(refusal(BreakPolicy::markers()), HasSubstr("no op of the graph knows a line of source"));
  auto unmarked = torch::jit::compile("def f(x):\n    return x * x\n");
  auto none =
      planBreaks(*torch::jit::toGraphFunction(unmarked->get_function("f")).graph(), BreakPolicy::markers());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("'# break'"));
}

TEST(Policies, ACutInABlockThatWasNotNamedStandsBehindTheBlockInstead) {
  auto graph = parse(R"(
graph(%x : Tensor, %flag : bool):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = prim::If(%flag)
    block0():
      %c : Tensor = aten::neg(%a)
      -> (%c)
    block1():
      -> (%a)
  %d : Tensor = aten::sin(%b)
  return (%d))");
  const BreakPlan plan = planned(graph, BreakPolicy::kinds({"neg"}));
  EXPECT_EQ(piecesOf(plan), (Ops{{"sin", "If"}, {"sin_1"}}));
  EXPECT_EQ(codes(plan), "inside_block@neg>If ");
  EXPECT_EQ(plan.cuts.at(0).reason, "nearest legal place to a cut after neg");
  for (const BreakPolicy& policy :
       {BreakPolicy::kinds({"neg"}).insideBlocks(), BreakPolicy::after({"neg"})}) {
    const BreakPlan opened = planned(graph, policy);
    EXPECT_EQ(piecesOf(opened), (Ops{{"sin"}, {"neg"}, {"sin_1"}}));
    EXPECT_EQ(opened.pieces.at(1).block, "then of If");
    // Whoever names the op is told that its cut is none of its own.
    EXPECT_EQ(codes(opened), policy.kind() == BreakPolicy::Kind::After ? "block_ends@neg " : "");
  }
  EXPECT_EQ(piecesOf(planned(graph, BreakPolicy::every(1).insideBlocks())), (Ops{{"sin"}, {"If"}, {"sin_1"}}))
      << "it holds no more ops than a piece";
  EXPECT_THAT(refusal(BreakPolicy::parameters().insideBlocks()), HasSubstr("cuts inside Ifs and Loops"));
}

TEST(Policies, AreReadFromWords) {
  auto kind = [](const char* words) { return BreakPolicy::read(words)->kind(); };
  using Kind = BreakPolicy::Kind;
  EXPECT_EQ(kind(""), Kind::None);
  EXPECT_EQ(kind("none"), Kind::None);
  EXPECT_EQ(kind("after mm relu"), Kind::After);
  EXPECT_EQ(BreakPolicy::read("every 3")->count(), 3u);
  EXPECT_EQ(BreakPolicy::read("balanced 3 bytes")->weight(), BreakPolicy::Weight::Bytes);
  EXPECT_EQ(kind("markers"), Kind::Markers);
  EXPECT_EQ(kind("parameters"), Kind::Parameters);
  EXPECT_THAT(BreakPolicy::read("kinds mm relu")->names(), ElementsAre("mm", "relu"));
  EXPECT_EQ(BreakPolicy::read("ddp")->bucketOptions().bytes, 26214400);
  EXPECT_TRUE(BreakPolicy::read("ddp 10 20 ddpoptimizer")->bucketOptions().as_ddpoptimizer);
  EXPECT_EQ(BreakPolicy::read("shards a+b c")->units(), (BreakPolicy::Units{{"a", "b"}, {"c"}}));
  for (const char* bad :
       {"none 1", "after", "every", "every 0", "every 1 2", "balanced", "balanced 2 words", "markers 1",
        "kinds", "ddp 1", "ddp 1 0", "ddp 1 2 dynamo", "shards a++b", "predicate", "sometimes"}) {
    EXPECT_FALSE(BreakPolicy::read(bad)) << bad;
  }
}

}  // namespace
}  // namespace faultline::test
