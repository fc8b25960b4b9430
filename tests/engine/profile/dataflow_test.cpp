// How long evidence holds, and where it reaches: small graphs, one question each.
#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

const std::string kZero = "profiled_type=Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)";
const std::string kOne = "profiled_type=Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)";

// ZERO and ONE stand for a profile node's attributes.
std::shared_ptr<Graph> graphOf(std::string text) {
  for (const auto& [word, type] : {std::pair{"ZERO", kZero}, std::pair{"ONE", kOne}}) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word))
      text.replace(at, strlen(word), type);
  }
  return test::parse(text);
}

ProfileLookup lookup(const std::shared_ptr<Graph>& graph, const std::string& user, size_t n = 0,
                     size_t offset = 0) {
  const ProfileLookup before = ProfileIndex(*graph).lookup(test::useBy(*graph, user, n, offset));
  // Whatever is asked here must read the same after propagation, and stand at the feed.
  auto propagated = graph->copy();
  propagateProfileNode(propagated);
  const ProfileIndex index(*propagated);
  const Use use = test::useBy(*propagated, user, n, offset);
  const ProfileLookup after = index.lookup(use);
  EXPECT_EQ(before.state, after.state);
  EXPECT_EQ(before.conditional, after.conditional);
  EXPECT_EQ(before.type == nullptr, after.type == nullptr);
  if (before.type && after.type) {
    EXPECT_EQ(before.type->str(), after.type->str());
    EXPECT_EQ(index.retrieve(use), use.user->input(use.offset)->node());
  }
  const std::string once = writeGraph(*propagated);
  propagateProfileNode(propagated);
  EXPECT_EQ(writeGraph(*propagated), once);
  return before;
}

std::string gradient(const ProfileLookup& lookup) {
  switch (lookup.requires_grad.state) {
    case FieldState::Value:
      return lookup.requires_grad.value ? "1" : "0";
    case FieldState::Varies:
      return "varies";
    case FieldState::Ended:
      return "ended";
    case FieldState::Nothing:
      return "nothing";
  }
  return "";
}

std::string sizes(const ProfileLookup& lookup) {
  std::string text;
  for (const auto& size : lookup.sizes)
    text += (text.empty() ? "" : ",") + (size.known() ? std::to_string(size.value) : "*");
  return text;
}

TEST(Dataflow, AWriteInOneArmDoesNotTouchTheOther) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor, %c : bool):
  %p : Tensor = prim::profile[ZERO](%v)
  %a : Tensor = aten::abs(%p)
  prim::If(%c)
    block0():
      %w : Tensor = aten::mul_(%v, %y)
      %b : Tensor = aten::sin(%v)
      -> ()
    block1():
      %d : Tensor = aten::cos(%v)
      -> ()
  %e : Tensor = aten::tan(%v)
  return (%e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::sin")), "ended");
  EXPECT_EQ(gradient(lookup(graph, "aten::cos")), "0");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "ended");
  EXPECT_EQ(sizes(lookup(graph, "aten::tan")), "2,3");
}

// What stands behind the If speaks for the arm that did not write, not for what was before the If.
TEST(Dataflow, BackwardsOutOfAnIf) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor, %c : bool):
  %z : Tensor = aten::abs(%v)
  prim::If(%c)
    block0():
      %a : Tensor = aten::sin(%v)
      %w : Tensor = aten::mul_(%v, %y)
      -> ()
    block1():
      %d : Tensor = aten::cos(%v)
      -> ()
  %p : Tensor = prim::profile[ONE](%v)
  %e : Tensor = aten::tan(%p)
  return (%e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::abs")), "ended");
  EXPECT_EQ(gradient(lookup(graph, "aten::sin")), "ended");
  EXPECT_EQ(gradient(lookup(graph, "aten::cos")), "1");
  EXPECT_FALSE(lookup(graph, "aten::cos").conditional);
  EXPECT_EQ(sizes(lookup(graph, "aten::abs")), "2,3");
}

TEST(Dataflow, ALaterZeroHeldBeforeAValueWrite) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %a : Tensor = aten::sin(%v)
  %w : Tensor = aten::mul_(%v, %y)
  %p : Tensor = prim::profile[ZERO](%v)
  %e : Tensor = aten::tan(%p)
  return (%a, %e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::sin")), "0");
}

TEST(Dataflow, OperandsWithoutGradientBringNoneIn) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %p : Tensor = prim::profile[ZERO](%v)
  %q : Tensor = prim::profile[ZERO](%y)
  %w : Tensor = aten::mul_(%v, %y)
  %x : Tensor = aten::div_(%v, %y)
  %e : Tensor = aten::tan(%v)
  return (%p, %q, %e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "0");
}

TEST(Dataflow, WritesUnderNoGradBringNoneIn) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %f : bool = prim::Constant[value=0]()
  %p : Tensor = prim::profile[ZERO](%v)
  %a : Tensor = aten::abs(%p)
  aten::set_grad_enabled(%f)
  %w : Tensor = aten::mul_(%v, %y)
  %e : Tensor = aten::tan(%v)
  return (%a, %e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "0");
}

TEST(Dataflow, IntegersCarryNoGradient) {
  auto graph = test::parse(R"(
graph(%v : Tensor, %y : Tensor):
  %p : Tensor = prim::profile[profiled_type=Long(2, strides=[1], requires_grad=0, device=cpu)](%v)
  %a : Tensor = aten::abs(%p)
  %w : Tensor = aten::mul_(%v, %y)
  %e : Tensor = aten::tan(%v)
  return (%a, %e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "0");
}

TEST(Dataflow, OnlyDetachAndRequiresGradLower) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %u : Tensor):
  %zero : int = prim::Constant[value=0]()
  %p : Tensor = prim::profile[ONE](%v)
  %a : Tensor = aten::abs(%p)
  %z : Tensor = aten::zero_(%v)
  %b : Tensor = aten::sin(%v)
  %d : Tensor = aten::detach_(%v)
  %c : Tensor = aten::cos(%v)
  return (%a, %b, %c)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::sin")), "1");
  const ProfileLookup after = lookup(graph, "aten::cos");
  EXPECT_EQ(gradient(after), "ended");
  EXPECT_NE(after.requires_grad.why.text().find("aten::detach_"), std::string::npos);
  EXPECT_EQ(sizes(after), "2,3");
}

TEST(Dataflow, DetachStartsAGroupOfItsOwn) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %x : Tensor = aten::neg(%v)
  %d : Tensor = aten::detach(%x)
  %p : Tensor = prim::profile[ZERO](%d)
  %w : Tensor = aten::mul_(%x, %y)
  %e : Tensor = aten::tan(%d)
  %b : Tensor = aten::mul_(%d, %y)
  %f : Tensor = aten::tan(%d)
  return (%p, %e, %f)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan", 0)), "0");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan", 1)), "ended");
}

TEST(Dataflow, AWriteThroughAViewReachesItsSiblings) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %x : Tensor = aten::neg(%v)
  %a : Tensor = aten::t(%x)
  %b : Tensor = aten::t(%x)
  %p : Tensor = prim::profile[ZERO](%a)
  %w : Tensor = aten::mul_(%b, %y)
  %e : Tensor = aten::tan(%a)
  return (%p, %e)
)");
  const ProfileLookup after = lookup(graph, "aten::tan");
  EXPECT_EQ(gradient(after), "ended");
  EXPECT_EQ(sizes(after), "2,3");
}

TEST(Dataflow, OtherTensorsAreNotTouched) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %x : Tensor = aten::neg(%v)
  %z : Tensor = aten::neg(%v)
  %p : Tensor = prim::profile[ZERO](%x)
  %w : Tensor = aten::mul_(%z, %y)
  %t : Tensor = aten::t_(%z)
  %e : Tensor = aten::tan(%x)
  return (%p, %e)
)");
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Concrete);
}

// Two graph inputs may be one tensor.
TEST(Dataflow, InputsMayBeTheSame) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %p : Tensor = prim::profile[ZERO](%v)
  %t : Tensor = aten::t_(%y)
  %e : Tensor = aten::tan(%v)
  return (%p, %e)
)");
  const ProfileLookup after = lookup(graph, "aten::tan");
  EXPECT_EQ(sizes(after), "*,*");  // t_ keeps the rank
  EXPECT_EQ(gradient(after), "0");
}

TEST(Dataflow, OutArgumentsAreResized) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor, %o : Tensor):
  %n : Tensor = aten::neg(%o)
  %p : Tensor = prim::profile[ZERO](%n)
  %w : Tensor = aten::mul(%v, %y, %n)
  %e : Tensor = aten::tan(%n)
  return (%p, %e)
)");
  const ProfileLookup after = lookup(graph, "aten::tan");
  EXPECT_FALSE(after.rank.known());
  EXPECT_TRUE(after.dtype.known());
}

TEST(Dataflow, SetDataEndsEverything) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %n : Tensor = aten::neg(%v)
  %p : Tensor = prim::profile[ZERO](%n)
  aten::set_data(%n, %y)
  %e : Tensor = aten::tan(%n)
  return (%p, %e)
)");
  const ProfileLookup after = lookup(graph, "aten::tan");
  EXPECT_EQ(after.type, nullptr);
  EXPECT_EQ(after.dtype.state, FieldState::Ended);
  EXPECT_NE(after.why_not.text().find("aten::set_data"), std::string::npos);
}

// A view that was made without grad mode shows its base's gradient from the next write on.
TEST(Dataflow, ViewsMadeUnderNoGrad) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %y : Tensor):
  %f : bool = prim::Constant[value=0]()
  %t : bool = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %x : Tensor = aten::neg(%v)
  aten::set_grad_enabled(%f)
  %s : Tensor = aten::t(%x)
  aten::set_grad_enabled(%t)
  %p : Tensor = prim::profile[ZERO](%s)
  %w : Tensor = aten::mul_(%x, %two)
  %e : Tensor = aten::tan(%s)
  return (%p, %e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "ended");
}

TEST(Joins, AnUnobservedArmSpoilsThem) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      %p : Tensor = prim::profile[ONE](%a)
      -> (%p)
    block1():
      %b : Tensor = aten::abs(%x)
      -> (%b)
  %e : Tensor = aten::tan(%r)
  return (%e)
)");
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Unknown);
}

TEST(Joins, NodesInBothArmsCoverTheWhole) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %c : bool):
  %z : Tensor = aten::abs(%x)
  prim::If(%c)
    block0():
      %p : Tensor = prim::profile[ONE](%x)
      -> ()
    block1():
      %q : Tensor = prim::profile[profiled_type=Float(5, 3, strides=[3, 1], requires_grad=1, device=cpu)](%x)
      -> ()
  %e : Tensor = aten::tan(%x)
  return (%z, %e)
)");
  for (const char* user : {"aten::abs", "aten::tan"}) {
    const ProfileLookup answer = lookup(graph, user);
    EXPECT_EQ(sizes(answer), "*,3");
    EXPECT_EQ(gradient(answer), "1");
    EXPECT_FALSE(answer.conditional) << user;
    EXPECT_EQ(lookupProfile(test::useBy(*graph, user)).from.size(), 2u);
  }
}

TEST(Joins, OneArmAloneIsConditional) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %c : bool):
  %z : Tensor = aten::abs(%x)
  prim::If(%c)
    block0():
      %p : Tensor = prim::profile[ONE](%x)
      %s : Tensor = aten::sin(%x)
      -> ()
    block1():
      -> ()
  return (%z)
)");
  EXPECT_TRUE(lookup(graph, "aten::abs").conditional);
  EXPECT_FALSE(lookup(graph, "aten::sin").conditional);
}

// The result of an If answers for what the arm returned.
TEST(Joins, BackwardsThroughTheResult) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %y : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      %s : Tensor = aten::sin(%a)
      -> (%a)
    block1():
      -> (%y)
  %p : Tensor = prim::profile[ONE](%r)
  %q : Tensor = aten::abs(%y)
  return (%p, %q)
)");
  EXPECT_EQ(lookup(graph, "aten::sin").state, ProfileState::Concrete);
  EXPECT_FALSE(lookup(graph, "aten::sin").conditional);
  // Which arm ran is not known: nothing says that %y was ever seen.
  EXPECT_EQ(lookup(graph, "aten::abs").state, ProfileState::Unknown);
}

TEST(Joins, NoneIsNeutral) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %c : bool):
  %n : NoneType = prim::Constant()
  %r : Tensor? = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      %p : Tensor = prim::profile[ONE](%a)
      -> (%p)
    block1():
      -> (%n)
  %u : Tensor = prim::unchecked_cast(%r)
  %e : Tensor = aten::tan(%u)
  return (%e)
)");
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Concrete);
}

TEST(Joins, WhatTheStaticTypeExcludesIsNoAnswerForTheArm) {
  auto graph = graphOf(R"(
graph(%x : Float(requires_grad=1, device=cpu), %y : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %s : Tensor = aten::sin(%y)
      -> (%s)
    block1():
      %n : Float(requires_grad=1, device=cpu) = aten::neg(%x)
      %m : Tensor = aten::cos(%n)
      -> (%n)
  %p : Tensor = prim::profile[profiled_type=Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)](%r)
  %e : Tensor = aten::tan(%p)
  return (%e)
)");
  const ProfileLookup arm = lookup(graph, "aten::cos");
  EXPECT_EQ(arm.state, ProfileState::Unknown);
  EXPECT_NE(arm.rank.why.text().find("static type"), std::string::npos);
  propagateProfileNode(graph);
  EXPECT_TRUE(validateProfileNode(graph));
}

TEST(Loops, AValueCarriedUnchangedIsTheInitialOne) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor = prim::profile[ONE](%x)
  %r : Tensor = prim::Loop(%n, %t, %p)
    block0(%i : int, %h : Tensor):
      %s : Tensor = aten::sin(%h)
      -> (%t, %h)
  %e : Tensor = aten::tan(%r)
  return (%e)
)");
  EXPECT_EQ(lookup(graph, "aten::sin").state, ProfileState::Concrete);
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Concrete);
  EXPECT_FALSE(lookup(graph, "aten::tan").conditional);
}

TEST(Loops, CarriedThroughAnIfUnchangedIsNeutral) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %n : int, %c : bool):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor = prim::profile[ONE](%x)
  %r : Tensor = prim::Loop(%n, %t, %p)
    block0(%i : int, %h : Tensor):
      %s : Tensor = aten::sin(%h)
      %k : Tensor = prim::If(%c)
        block0():
          -> (%h)
        block1():
          %m : Tensor = aten::neg(%h)
          %q : Tensor = prim::profile[ONE](%m)
          -> (%q)
      -> (%t, %k)
  %e : Tensor = aten::tan(%r)
  return (%e)
)");
  EXPECT_EQ(lookup(graph, "aten::sin").state, ProfileState::Concrete);
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Concrete);
}

TEST(Loops, AResultWithoutEvidenceSpoilsTheCarriedValue) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor = prim::profile[ONE](%x)
  %r : Tensor = prim::Loop(%n, %t, %p)
    block0(%i : int, %h : Tensor):
      %m : Tensor = aten::sin(%h)
      -> (%t, %m)
  %e : Tensor = aten::tan(%r)
  return (%e)
)");
  EXPECT_EQ(lookup(graph, "aten::sin").state, ProfileState::Unknown);
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Unknown);
}

TEST(Loops, ABodyThatNeverRanDeliversNothing) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor = prim::profile[ONE](%x)
  %r : Tensor = prim::Loop(%n, %t, %p)
    block0(%i : int, %h : Tensor):
      %q : Tensor = prim::profile[profiled_type=Tensor](%h)
      %m : Tensor = aten::sin(%q)
      -> (%t, %m)
  %e : Tensor = aten::tan(%r)
  return (%e)
)");
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Concrete);
}

TEST(Loops, AMetadataWriteComesRoundTheLoop) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor = prim::profile[ZERO](%v)
  %a : Tensor = aten::cos(%p)
  prim::Loop(%n, %t)
    block0(%i : int):
      %s : Tensor = aten::sin(%v)
      %m : Tensor = aten::t_(%v)
      -> (%t)
  %e : Tensor = aten::tan(%v)
  return (%a, %e)
)");
  EXPECT_EQ(sizes(lookup(graph, "aten::cos")), "2,3");
  EXPECT_EQ(sizes(lookup(graph, "aten::sin")), "*,*");
  EXPECT_EQ(sizes(lookup(graph, "aten::tan")), "*,*");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "0");
}

TEST(Plumbing, DictsAndNestedTuples) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %y : Tensor, %c : bool):
  %k : str = prim::Constant[value="a"]()
  %j : str = prim::Constant[value="b"]()
  %p : Tensor = prim::profile[ONE](%x)
  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %p, %j, %y)
  %e : Tensor = aten::__getitem__(%d, %k)
  %f : Tensor = aten::__getitem__(%d, %j)
  %a : Tensor = aten::sin(%e)
  %b : Tensor = aten::cos(%f)
  %in : (Tensor, Tensor) = prim::TupleConstruct(%p, %y)
  %out : ((Tensor, Tensor), Tensor) = prim::TupleConstruct(%in, %y)
  %g : (Tensor, Tensor), %h : Tensor = prim::TupleUnpack(%out)
  %m : Tensor, %n : Tensor = prim::TupleUnpack(%g)
  %o : Tensor = aten::tan(%m)
  return (%a, %b, %o)
)");
  EXPECT_EQ(lookup(graph, "aten::sin").state, ProfileState::Concrete);
  EXPECT_EQ(lookup(graph, "aten::cos").state, ProfileState::Unknown);
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Concrete);
}

TEST(Plumbing, TuplesAcrossIfAndLoop) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %y : Tensor, %c : bool, %n : int):
  %true : bool = prim::Constant[value=1]()
  %p : Tensor = prim::profile[ONE](%x)
  %t : (Tensor, Tensor) = prim::If(%c)
    block0():
      %a : (Tensor, Tensor) = prim::TupleConstruct(%p, %y)
      -> (%a)
    block1():
      %z : Tensor = aten::neg(%x)
      %q : Tensor = prim::profile[ZERO](%z)
      %b : (Tensor, Tensor) = prim::TupleConstruct(%q, %y)
      -> (%b)
  %l : (Tensor, Tensor) = prim::Loop(%n, %true, %t)
    block0(%i : int, %h : (Tensor, Tensor)):
      -> (%true, %h)
  %m : Tensor, %o : Tensor = prim::TupleUnpack(%l)
  %e : Tensor = aten::tan(%m)
  return (%e, %o)
)");
  const ProfileLookup answer = lookup(graph, "aten::tan");
  EXPECT_EQ(gradient(answer), "varies");
  EXPECT_EQ(sizes(answer), "2,3");
}

TEST(Plumbing, ListsIntoSubgraphs) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %y : Tensor):
  %p : Tensor = prim::profile[ONE](%x)
  %l : Tensor[] = prim::ListConstruct(%p, %y)
  %r : Tensor = prim::DifferentiableGraph_0(%l)
  return (%r)
with prim::DifferentiableGraph_0 = graph(%l : Tensor[]):
  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)
  %s : Tensor = aten::sin(%a)
  %c : Tensor = aten::cos(%b)
  %m : Tensor = aten::mul(%s, %c)
  return (%m)
)");
  EXPECT_EQ(lookup(graph, "aten::sin").state, ProfileState::Concrete);
  EXPECT_EQ(lookup(graph, "aten::cos").state, ProfileState::Unknown);
}

TEST(Subgraphs, ToAnyDepth) {
  auto graph = graphOf(R"(
graph(%x : Tensor):
  %r : Tensor = prim::DifferentiableGraph_0(%x)
  %e : Tensor = aten::tan(%r)
  return (%e)
with prim::DifferentiableGraph_0 = graph(%a : Tensor):
  %b : Tensor = prim::FunctionalGraph_0(%a)
  %s : Tensor = aten::sin(%a)
  %o : Tensor = aten::mul(%b, %s)
  return (%b)
with prim::FunctionalGraph_0 = graph(%a : Tensor):
  %p : Tensor = prim::profile[ONE](%a)
  %c : Tensor = aten::cos(%p)
  %q : Tensor = prim::profile[ONE](%c)
  return (%q)
)");
  EXPECT_EQ(lookup(graph, "prim::DifferentiableGraph").state, ProfileState::Concrete);
  EXPECT_EQ(lookup(graph, "aten::sin").state, ProfileState::Concrete);
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Concrete);
  EXPECT_FALSE(lookup(graph, "aten::tan").conditional);
}

// A subgraph that hangs on two nodes is one text for two calls: nothing passes its boundary.
TEST(Subgraphs, SharedOnesAreNotEntered) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %y : Tensor):
  %p : Tensor = prim::profile[ONE](%x)
  %r : Tensor = prim::DifferentiableGraph_0(%p)
  %q : Tensor = prim::DifferentiableGraph_1(%y)
  return (%r, %q)
with prim::DifferentiableGraph_0 = graph(%a : Tensor):
  %s : Tensor = aten::sin(%a)
  return (%s)
with prim::DifferentiableGraph_1 = graph(%a : Tensor):
  %s : Tensor = aten::sin(%a)
  return (%s)
)");
  Node* first = test::useBy(*graph, "prim::DifferentiableGraph", 0).user;
  Node* second = test::useBy(*graph, "prim::DifferentiableGraph", 1).user;
  second->g_(torch::jit::attr::Subgraph, first->g(torch::jit::attr::Subgraph));
  const ProfileLookup answer = ProfileIndex(*graph).lookup(test::useBy(*graph, "aten::sin"));
  EXPECT_EQ(answer.state, ProfileState::Unknown);
  EXPECT_NE(answer.why_not.text().find("two nodes"), std::string::npos);
}

TEST(Modes, SavedAndRestored) {
  auto graph = graphOf(R"(
graph(%v : Tensor):
  %f : bool = prim::Constant[value=0]()
  %was : bool = aten::is_grad_enabled()
  aten::set_grad_enabled(%f)
  %p : Tensor = prim::profile[ZERO](%v)
  %a : Tensor = aten::sin(%p)
  aten::set_grad_enabled(%was)
  %q : Tensor = prim::profile[ZERO](%a)
  %e : Tensor = aten::tan(%q)
  return (%e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::sin")), "nothing");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "0");
}

// As CreateFunctionalGraphs leaves it.
TEST(Modes, SavedInsideOfASubgraph) {
  auto graph = graphOf(R"(
graph(%v : Tensor):
  %was : bool = prim::FunctionalGraph_0()
  %a : Tensor = aten::sin(%v)
  aten::set_grad_enabled(%was)
  %q : Tensor = prim::profile[ZERO](%a)
  %e : Tensor = aten::tan(%q)
  return (%e)
with prim::FunctionalGraph_0 = graph():
  %f : bool = prim::Constant[value=0]()
  %saved : bool = aten::is_grad_enabled()
  aten::set_grad_enabled(%f)
  return (%saved)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "0");
}

TEST(Loops, CarriedThroughASubgraphUnchanged) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %p : Tensor = prim::profile[ONE](%v)
  %r : Tensor = prim::Loop(%n, %t, %p)
    block0(%i : int, %c : Tensor):
      %k : Tensor = prim::FunctionalGraph_0(%c)
      -> (%t, %k)
  %e : Tensor = aten::tan(%r)
  return (%e)
with prim::FunctionalGraph_0 = graph(%a : Tensor):
  %s : Tensor = aten::sin(%a)
  return (%a)
)");
  const ProfileLookup answer = lookup(graph, "aten::tan");
  EXPECT_EQ(answer.state, ProfileState::Concrete);
  EXPECT_FALSE(answer.conditional);
}

TEST(Modes, UncertainAfterAnIfThatSetsThem) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %c : bool):
  %f : bool = prim::Constant[value=0]()
  prim::If(%c)
    block0():
      aten::set_grad_enabled(%f)
      -> ()
    block1():
      -> ()
  %p : Tensor = prim::profile[ZERO](%v)
  %e : Tensor = aten::tan(%p)
  return (%e)
)");
  EXPECT_EQ(gradient(lookup(graph, "aten::tan")), "nothing");
}

TEST(States, UnseenAndVaries) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %w : Tensor):
  %p : Tensor = prim::profile[profiled_type=Tensor](%v)
  %e : Tensor = aten::tan(%p)
  %q : Tensor = prim::profile[profiled_type=Tensor, faultline_fields=["dtype"]](%w)
  %f : Tensor = aten::sin(%q)
  return (%e, %f)
)");
  const ProfileLookup unseen = lookup(graph, "aten::tan");
  EXPECT_EQ(unseen.state, ProfileState::Unseen);
  EXPECT_NE(unseen.why_not.text().find("never ran"), std::string::npos);
  EXPECT_EQ(lookup(graph, "aten::sin").state, ProfileState::Varies);
}

// Clones stand in for evidence that a pass has taken away, at the uses they feed and nowhere else.
TEST(Clones, AnswerWithoutTheirEvidence) {
  auto graph = graphOf(R"(
graph(%v : Tensor, %c : bool):
  %p : Tensor = prim::profile[ONE](%v)
  %a : Tensor = aten::sin(%p)
  prim::If(%c)
    block0():
      %b : Tensor = aten::cos(%v)
      -> ()
    block1():
      -> ()
  %e : Tensor = aten::tan(%v)
  return (%a, %e)
)");
  propagateProfileNode(graph);
  Node* original = test::useBy(*graph, "aten::sin").user->input(0)->node();
  original->output()->replaceAllUsesWith(original->input());
  original->destroy();
  EXPECT_EQ(ProfileIndex(*graph).lookup(test::useBy(*graph, "aten::sin")).state, ProfileState::Unknown);
  EXPECT_EQ(ProfileIndex(*graph).lookup(test::useBy(*graph, "aten::cos")).state, ProfileState::Concrete);
  EXPECT_EQ(ProfileIndex(*graph).lookup(test::useBy(*graph, "aten::tan")).state, ProfileState::Concrete);
}

// As subgraph creation leaves them: a pass took a clone along, and what it fed before is on the other side.
TEST(Clones, SpeakOnAcrossTheBoundaryOfASubgraph) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %y : Tensor):
  %i : Tensor = prim::profile[ONE, faultline_clone=1](%y)
  %r : Tensor, %k : Tensor = prim::DifferentiableGraph_0(%x, %i)
  %e : Tensor = aten::tan(%r)
  %t : Tensor = aten::t_(%k)
  %f : Tensor = aten::cos(%k)
  return (%e, %f)
with prim::DifferentiableGraph_0 = graph(%a : Tensor, %b : Tensor):
  %s : Tensor = aten::sin(%a)
  %c : Tensor = prim::profile[ONE, faultline_clone=1](%s)
  %n : Tensor = aten::neg(%s)
  %u : Tensor = aten::exp(%b)
  %g : Tensor = prim::FunctionalGraph_0(%a)
  return (%c, %g)
with prim::FunctionalGraph_0 = graph(%a : Tensor):
  %h : Tensor = aten::abs(%a)
  %d : Tensor = prim::profile[ONE, faultline_clone=1, faultline_conditional=1](%h)
  return (%d)
)");
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Concrete);
  EXPECT_FALSE(lookup(graph, "aten::tan").conditional);
  EXPECT_EQ(lookup(graph, "aten::exp").state, ProfileState::Concrete);
  EXPECT_EQ(lookup(graph, "aten::t_").state, ProfileState::Concrete);
  EXPECT_TRUE(lookup(graph, "aten::t_").conditional);
  // A write ends what a clone said too; and one is no evidence, neither of its own value nor of another.
  EXPECT_EQ(lookup(graph, "aten::cos").dtype.value, at::kFloat);
  EXPECT_EQ(sizes(lookup(graph, "aten::cos")), "");
  EXPECT_EQ(lookup(graph, "aten::neg").state, ProfileState::Unknown);
  EXPECT_EQ(lookup(graph, "aten::abs").state, ProfileState::Unknown);
}

// An operand that only clones look at inside: they stood at its uses before these went in. Where something
// else looks too, an answer outside would give it one that it did not have.
TEST(Clones, SpeakForTheOperandOfASubgraph) {
  auto graph = graphOf(R"(
graph(%x : Tensor, %y : Tensor, %z : Tensor):
  %r : Tensor = prim::DifferentiableGraph_0(%x, %y, %z)
  %e : Tensor = aten::tan(%x)
  return (%r, %e)
with prim::DifferentiableGraph_0 = graph(%a : Tensor, %b : Tensor, %w : Tensor):
  %c : Tensor = prim::profile[ONE, faultline_clone=1](%a)
  %s : Tensor = aten::sin(%c)
  %d : Tensor = prim::profile[ONE, faultline_clone=1](%b)
  %n : Tensor = aten::neg(%b)
  %t : Tensor = aten::t_(%w)
  %f : Tensor = prim::profile[ONE, faultline_clone=1](%t)
  %m : Tensor = aten::mul(%d, %f)
  return (%s)
)");
  EXPECT_EQ(lookup(graph, "prim::DifferentiableGraph", 0, 0).state, ProfileState::Concrete);
  EXPECT_EQ(lookup(graph, "prim::DifferentiableGraph", 0, 1).state, ProfileState::Unknown);
  EXPECT_EQ(lookup(graph, "prim::DifferentiableGraph", 0, 2).state, ProfileState::Unknown);
  EXPECT_EQ(lookup(graph, "aten::neg").state, ProfileState::Unknown);
  EXPECT_EQ(lookup(graph, "aten::tan").state, ProfileState::Unknown);
}

}  // namespace
}  // namespace faultline
