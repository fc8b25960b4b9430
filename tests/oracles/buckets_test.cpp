// break_equiv on what the case asks for by name: cuts, and c10d's buckets.
#include <gtest/gtest.h>

#include "oracles/oracle.h"
#include "tests/oracles/written.h"

namespace faultline {
namespace {

using namespace written;

// Three parameters of 8 bytes, one of 16; the last to be used is ready first.
Case fourMuls(const std::string& breaks) {
  Case c = caseOf(R"(graph(%x : Tensor, %a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  %1 : Tensor = aten::mul(%x, %a)
  %2 : Tensor = aten::mul(%1, %b)
  %3 : Tensor = aten::mul(%2, %c)
  %4 : Tensor = aten::mul(%3, %d)
  return (%4)
)",
                  {input({2}, false), input({2}), input({2}), input({2}), input({2, 2})});
  c.plan.breaks = breaks;
  return c;
}

Trace inPieces(std::vector<BucketTrace> buckets) {
  Trace t;
  t.runs.push_back(run({withGrad(tensor("out0", {1}))}, {tensor("in1", {1})}));
  t.pieces = {{{"mul"}, true, ""}, {{"mul_1", "mul_2"}, true, ""}, {{"mul_3"}, true, ""}};
  t.buckets = std::move(buckets);
  return t;
}

std::string equiv(const Case& c, const Trace& lane) {
  const Verdict v = findOracle("break_equiv")->make({})->judge(c, inPieces({}), lane);
  return v.failed() ? v.signature("break_equiv", "lane") : v.passed() ? "pass" : "skip " + v.reason();
}

TEST(Buckets, AsC10dFillsThem) {
  const Case c = fourMuls("ddp 16 16");
  const std::string wrong = "break_equiv/lane/hook_order/wrong_bucket";
  EXPECT_EQ(equiv(c, inPieces({{{4}, 16, 2}, {{3, 2}, 16, 1}, {{1}, 8, 0}})), "pass");
  // Full before it took the last; closed before it is full; one twice; bytes that are none.
  EXPECT_EQ(equiv(c, inPieces({{{4, 3}, 24, 1}, {{2, 1}, 16, 0}})), wrong);
  EXPECT_EQ(equiv(c, inPieces({{{4}, 16, 2}, {{3}, 8, 1}, {{2, 1}, 16, 0}})), wrong);
  EXPECT_EQ(equiv(c, inPieces({{{4}, 16, 2}, {{3, 3}, 16, 1}, {{1}, 8, 0}})), wrong);
  EXPECT_EQ(equiv(c, inPieces({{{4}, 16, 2}, {{3, 2}, 12, 1}, {{1}, 8, 0}})), wrong);
  // Its gradient comes from an earlier piece; the piece holds none of it.
  EXPECT_EQ(equiv(c, inPieces({{{4}, 16, 2}, {{3, 1}, 16, 1}, {{2}, 8, 0}})), wrong);
  EXPECT_EQ(equiv(c, inPieces({{{4}, 16, 1}, {{3, 2}, 16, 1}, {{1}, 8, 0}})), wrong);
}

TEST(Buckets, OfTheOptimizerFollowAnotherRule) {
  EXPECT_EQ(equiv(fourMuls("ddp 16 16 ddpoptimizer"), inPieces({{{4, 3}, 24, 1}, {{2, 1}, 16, 0}})), "pass");
}

TEST(NamedCuts, AreThereOrRefused) {
  EXPECT_EQ(equiv(fourMuls("after mul mul_2"), inPieces({})), "pass");
  EXPECT_EQ(equiv(fourMuls("after mul mul_1"), inPieces({})), "break_equiv/lane/hook_order/dropped_cut");
  Trace refused = inPieces({});
  refused.refused_cuts = {"mul_1: the piece would have nothing to do"};
  EXPECT_EQ(equiv(fourMuls("after mul mul_1"), refused), "pass");
}

}  // namespace
}  // namespace faultline
