// The lanes of the profile protocol: what their traces carry, and that later runs differ as they like.
#include <gtest/gtest.h>

#include "oracles/exec/profile_case.h"
#include "oracles/judge.h"
#include "tests/oracles/written.h"

namespace faultline {
namespace {

using namespace written;

// x needs no gradient in the first run; in the second it does, and the other arm is taken.
Case flipped() {
  Case c = caseOf(R"(graph(%x : Tensor, %w : Tensor, %c : bool):
  %y : Tensor = prim::DifferentiableGraph_0(%x, %w)
  %r : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::relu(%y)
      -> (%p)
    block1():
      -> (%w)
  %s : Tensor = aten::mul(%r, %x)
  return (%s)
with prim::DifferentiableGraph_0 = graph(%a : Tensor, %b : Tensor):
  %m : Tensor = aten::mm(%a, %b)
  %t : Tensor = aten::tanh(%m)
  return (%t)
)",
                  {input({2, 2}, false), input({2, 2}), {}}, 2);
  for (CaseRun& run : c.runs) {
    run.inputs[2].kind = InputSpec::Kind::Bool;
    run.inputs[2].bool_value = true;
  }
  c.runs[1].inputs[0].requires_grad = true;
  c.runs[1].inputs[2].bool_value = false;
  return c;
}

Trace traceOf(const Case& c, const char* lane) { return findLane(lane)->make()->execute(c, c.seed); }

void expectAllPass(const Case& c) {
  JudgeOptions options;
  options.lanes = {"engine.removed", "engine.profiled"};
  const CaseResult result = judgeCase(c, options);
  EXPECT_EQ(result.skip, "");
  for (const Judgement& j : result.judgements) {
    EXPECT_FALSE(j.verdict.failed()) << j.lane << " " << j.signature << ": " << j.verdict.message();
  }
}

TEST(ProfileLanes, FollowRunsThatDiffer) {
  expectAllPass(flipped());
  Case c = flipped();
  c.runs[1].grad_mode = false;
  expectAllPass(c);
  std::swap(c.runs[0], c.runs[1]);
  expectAllPass(c);
}

TEST(ProfileLanes, PrunedGradientsAreCounted) {
  Case c = flipped();
  // Seeds decide which nodes are left out: with all of them the gradient of x is pruned for sure.
  size_t pruned = 0;
  for (c.seed = 0; c.seed < 16; ++c.seed) {
    const Trace trace = traceOf(c, "engine.profiled");
    ASSERT_EQ(trace.shares.size(), 1u);
    EXPECT_EQ(trace.shares[0].name, "pruned");
    EXPECT_EQ(trace.shares[0].of, 1u);
    pruned += trace.shares[0].hits;
  }
  EXPECT_GE(pruned, 4u);
}

TEST(ProfileLanes, WhatArrivesIsSeenInEveryRun) {
  const Trace trace = traceOf(flipped(), "engine.removed");
  ASSERT_TRUE(trace.profile.has_value());
  EXPECT_EQ(trace.profile->evidence, "recorded");
  bool inside = false;
  for (const ProfileUseTrace& use : trace.profile->uses) {
    ASSERT_EQ(use.seen.size(), 3u) << use.at;
    if (use.at.rfind("aten::mm, operand 0", 0) != 0) continue;
    inside = true;
    EXPECT_FALSE(use.seen[0].requires_grad.value);
    EXPECT_TRUE(use.seen[1].requires_grad.value);  // as if inlined
  }
  EXPECT_TRUE(inside);
  EXPECT_EQ(trace.profile->removed.find("prim::profile"), std::string::npos);
  // By place and by reason, the parts are the whole.
  ASSERT_FALSE(trace.shares.empty());
  const ShareTrace& answered = trace.shares[0];
  EXPECT_EQ(answered.name, "answered");
  uint64_t hits = 0, of = 0, silent = 0;
  for (const ShareTrace& share : trace.shares) {
    if (share.name.rfind("answered_in_", 0) == 0) {
      hits += share.hits;
      of += share.of;
    }
    if (share.name.rfind("no_answer_", 0) == 0) {
      silent += share.hits;
      EXPECT_EQ(share.of, answered.of - answered.hits);
    }
  }
  EXPECT_EQ(hits, answered.hits);
  EXPECT_EQ(of, answered.of);
  EXPECT_EQ(silent, answered.of - answered.hits);
}

TEST(ProfileLanes, NodesOfTheCaseAreKeptOrIgnoredAsPlanned) {
  Case c = caseOf(R"(graph(%x : Tensor, %w : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)](%x)
  %m : Tensor = aten::mm(%p, %w)
  return (%m)
)",
                  {input({2, 2}, false), input({2, 2})}, 2);
  c.plan.profile = "keep";
  Trace kept = traceOf(c, "engine.removed");
  EXPECT_EQ(kept.profile->evidence, "kept");
  ASSERT_EQ(kept.profile->claims.size(), 1u);
  ASSERT_TRUE(kept.profile->claims[0].site.has_value());
  EXPECT_EQ(kept.profile->uses[*kept.profile->claims[0].site].at.rfind("aten::mm, operand 0", 0), 0u);
  EXPECT_EQ(kept.profile->uses[0].before.state, "concrete");
  EXPECT_EQ(traceOf(c, "engine.profiled").shares[0].hits, 1u);
  expectAllPass(c);
  // A node that is wrong: guarded.
  c.runs[0].inputs[0].requires_grad = c.runs[1].inputs[0].requires_grad = true;
  expectAllPass(c);
  c.plan.profile = "record";
  EXPECT_EQ(traceOf(c, "engine.removed").profile->evidence, "recorded");
  expectAllPass(c);
}

TEST(ProfileLanes, NoProfileOfAProgramThatThrows) {
  Case c = caseOf("graph(%x : Tensor, %w : Tensor):\n  %m : Tensor = aten::mm(%x, %w)\n  return (%m)\n",
                  {input({2, 3}), input({2, 3})});
  const Trace trace = traceOf(c, "engine.removed");
  EXPECT_FALSE(trace.profile.has_value());
  EXPECT_TRUE(trace.runs[0].phases[0].error.has_value());
}

}  // namespace
}  // namespace faultline
