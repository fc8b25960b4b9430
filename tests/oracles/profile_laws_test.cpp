// profile_laws on written traces: each law, soundness, and which runs and answers count.
#include <gtest/gtest.h>

#include "oracles/oracle.h"
#include "tests/oracles/written.h"

namespace faultline {
namespace {

using namespace written;

FactTrace fact(int64_t size, bool requires_grad) {
  FactTrace f;
  f.defined = true;
  f.dtype = at::kFloat;
  f.device = c10::Device(c10::DeviceType::CPU);
  f.rank = 1;
  f.sizes = {size};
  f.strides = {1};
  f.requires_grad = requires_grad;
  return f;
}

SeenTensor seen(int64_t size, bool requires_grad, bool grad_mode = true) {
  SeenTensor s;
  s.times = 1;
  s.defined.see(true);
  s.dtype.see(at::kFloat);
  s.device.see(c10::Device(c10::DeviceType::CPU));
  s.rank.see(1);
  s.sizes = {{true, false, size}};
  s.strides = {{true, false, 1}};
  s.requires_grad.see(requires_grad);
  s.grad_mode.see(grad_mode);
  s.stock_grad.see(requires_grad && grad_mode);
  return s;
}

// Three runs; one node, on what use 0 gets; use 1 is answered too.
Trace lawful() {
  Trace t = trace();
  t.profile.emplace();
  const ProfileAnswerTrace answer{"concrete", false, true, fact(2, true)};
  t.profile->uses = {{"a", answer, answer, {}}, {"b", answer, answer, {}}};
  for (ProfileUseTrace& use : t.profile->uses) use.seen = {seen(2, true), seen(2, true), seen(2, true)};
  t.profile->claims = {{"%x", false, false, fact(2, true), 0}};
  t.profile->propagated = t.profile->propagated_again = "prim::profile";
  t.profile->removed = t.profile->removed_unpropagated = "graph";
  t.profile->findings_before = {"not_at_feed"};
  return t;
}

std::string judged(const Trace& lane, const Case& c = smallCase()) {
  const Verdict v = findOracle("profile_laws")->make({})->judge(c, trace(), lane);
  return v.failed() ? v.signature("profile_laws", "lane") : v.passed() ? "pass" : "skip " + v.reason();
}

template <class Change>
std::string judgedWith(Change change) {
  Trace t = lawful();
  change(t, *t.profile);
  return judged(t);
}

uint64_t comparisonsOf(const Trace& lane) {
  return findOracle("profile_laws")->make({})->judge(smallCase(), trace(), lane).comparisons();
}

TEST(ProfileLaws, HoldAndAreCounted) {
  EXPECT_EQ(judged(lawful()), "pass");
  // Five laws, one per use, and 7 fields of 2 uses in 3 runs.
  EXPECT_EQ(comparisonsOf(lawful()), 5u + 2u + 7u * 2u * 3u);
  EXPECT_EQ(judged(trace()), "skip not_applicable");
}

TEST(ProfileLaws, EachLaw) {
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) { p.propagated_again += "x"; }),
            "profile_laws/lane/invalid_graph/not_idempotent");
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) { p.removed += "x"; }),
            "profile_laws/lane/invalid_graph/not_undone");
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) { p.removed = p.removed_unpropagated = "prim::profile"; }),
            "profile_laws/lane/invalid_graph/left_behind");
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) { p.verify_error = "no"; }),
            "profile_laws/lane/invalid_graph/not_valid");
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) { p.findings_after = {"not_at_feed"}; }),
            "profile_laws/lane/invalid_graph/not_validated");
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) { p.uses[1].after.fact.rank.reset(); }),
            "profile_laws/lane/unsound_profile/answer_changed");
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) {
              p.unseen_tried = true;
              p.answers_of_unseen = {"a"};
            }),
            "profile_laws/lane/unsound_profile/unseen");
  // What contradicts itself need not validate.
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) {
              p.findings_before = {"contradiction"};
              p.findings_after = {"contradiction"};
            }),
            "pass");
}

TEST(ProfileLaws, AnswersDescribeWhatArrives) {
  const auto arrives = [](const SeenTensor& other) {
    return judgedWith([&](Trace&, ProfileTrace& p) { p.uses[1].seen[2] = other; });
  };
  EXPECT_EQ(arrives(seen(3, true)), "profile_laws/lane/unsound_profile/sizes");
  EXPECT_EQ(arrives(seen(2, false)), "profile_laws/lane/unsound_profile/requires_grad");
  SeenTensor other = seen(2, true);
  other.dtype = {true, false, at::kDouble};
  EXPECT_EQ(arrives(other), "profile_laws/lane/unsound_profile/dtype");
  other = seen(2, true);
  other.merge(seen(3, true));
  EXPECT_EQ(arrives(other), "profile_laws/lane/unsound_profile/sizes");
  other = seen(2, true);
  other.rank = {true, false, 2};
  EXPECT_EQ(arrives(other), "profile_laws/lane/unsound_profile/rank");
  EXPECT_EQ(arrives(SeenTensor()), "pass");  // not executed
}

TEST(ProfileLaws, OnlyRunsThatTheEvidenceDescribes) {
  // Run 2 is another than the one that was profiled: the node itself says so.
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) {
              for (ProfileUseTrace& use : p.uses) use.seen[2] = seen(3, true);
            }),
            "pass");
  // A node that never ran did.
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) {
              p.claims.push_back({"%y", true, false, {}, 1});
              p.uses[1].seen[2] = seen(3, true);
            }),
            "pass");
  // A run that throws.
  EXPECT_EQ(judgedWith([](Trace& t, ProfileTrace& p) {
              t.runs[2].phases[0].error = error("x");
              p.uses[1].seen[2] = seen(3, true);
            }),
            "pass");
  // A node behind which no use shows what it got.
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) {
              p.claims.push_back({"%y", false, false, {}, {}});
              p.uses[1].seen[2] = seen(3, true);
            }),
            "pass");
}

TEST(ProfileLaws, ConditionalAnswersAndCallersWithoutGradMode) {
  EXPECT_EQ(judgedWith([](Trace&, ProfileTrace& p) {
              p.uses[1].before.conditional = p.uses[1].after.conditional = true;
              p.uses[1].seen[2] = seen(3, true);
            }),
            "pass");
  Case c = smallCase();
  c.runs.push_back(c.runs[0]);
  c.runs[1].grad_mode = false;
  Trace t = lawful();
  for (size_t run : {size_t{1}, size_t{2}}) t.profile->uses[1].seen[run] = seen(2, false, false);
  t.profile->claims[0].fact.requires_grad.reset();
  EXPECT_EQ(judged(t, c), "pass");
  EXPECT_EQ(judged(t), "profile_laws/lane/unsound_profile/requires_grad");
}

// A 0 that a stock node recorded without grad mode is what it would record again, and no claim about the
// tensor.
TEST(ProfileLaws, StockNodesAreHeldAgainstWhatTheyRecord) {
  const auto with = [](bool raw) {
    return judgedWith([&](Trace&, ProfileTrace& p) {
      p.claims[0].fact.requires_grad = false;
      p.claims[0].raw = raw;
      for (SeenTensor& s : p.uses[0].seen) s = seen(2, true, false);
      p.uses[1].before.fact.requires_grad = p.uses[1].after.fact.requires_grad = false;
    });
  };
  EXPECT_EQ(with(false), "profile_laws/lane/unsound_profile/requires_grad");
  EXPECT_EQ(with(true), "pass");  // the node is wrong: these runs say nothing
}

}  // namespace
}  // namespace faultline
