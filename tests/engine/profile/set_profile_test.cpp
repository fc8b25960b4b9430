// What passes say of values that they make or replace.
#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

namespace aten = torch::jit::aten;

c10::TensorTypePtr seen(at::IntArrayRef sizes, bool requires_grad) {
  return c10::TensorType::create(at::ones(sizes).requires_grad_(requires_grad));
}

const char* const kTwoOps = R"(
graph(%x : Tensor):
  %m : Tensor = aten::neg(%x)
  %y : Tensor = aten::relu(%m)
  %z : Tensor = aten::tanh(%m)
  return (%y, %z)
)";

TEST(SetProfile, ItsUsesKnow) {
  auto graph = test::parse(kTwoOps);
  const Use relu = test::useBy(*graph, "aten::relu"), tanh = test::useBy(*graph, "aten::tanh");
  ASSERT_TRUE(setProfile(relu.user->input(0), seen({2, 3}, true)));
  graph->lint();
  EXPECT_TRUE(validateProfileNode(graph));
  for (const Use& use : {relu, tanh}) {
    const ProfileLookup lookup = lookupProfile(use);
    EXPECT_EQ(lookup.state, ProfileState::Concrete);
    EXPECT_FALSE(lookup.conditional);
    EXPECT_TRUE(lookup.requires_grad.value);
    EXPECT_EQ(retrieveProfileInformation(use), use.user->input(0)->node());
  }
}

TEST(SetProfile, OfInputsToo) {
  auto graph = test::parse(kTwoOps);
  ASSERT_TRUE(setProfile(graph->inputs()[0], seen({4}, false)));
  graph->lint();
  EXPECT_EQ(lookupProfile(test::useBy(*graph, "aten::neg")).state, ProfileState::Concrete);
}

// An answer that was true of the value before is none of the one that a pass put in its place.
TEST(SetProfile, ReplacesWhatWasSaid) {
  auto graph = test::parse(kTwoOps);
  const Use relu = test::useBy(*graph, "aten::relu");
  Value* value = relu.user->input(0);
  setProfile(value, seen({2, 3}, false));
  propagateProfileNode(graph);
  ASSERT_TRUE(setProfile(value, seen({7}, false)));
  EXPECT_EQ(test::countProfiles(*graph), 1u);
  const ProfileLookup lookup = lookupProfile(relu);
  ASSERT_EQ(lookup.sizes.size(), 1u);
  EXPECT_EQ(lookup.sizes[0].value, 7);
  EXPECT_TRUE(validateProfileNode(graph));
}

TEST(SetProfile, OpenFieldsAreNotSpokenOf) {
  auto graph = test::parse(kTwoOps);
  const Use relu = test::useBy(*graph, "aten::relu");
  const auto dtype_only = c10::TensorType::create(at::kDouble, std::nullopt, c10::SymbolicShape(),
                                                  c10::VaryingShape<c10::Stride>(), std::nullopt);
  ASSERT_TRUE(setProfile(relu.user->input(0), dtype_only));
  const ProfileLookup lookup = lookupProfile(relu);
  EXPECT_EQ(lookup.state, ProfileState::Partial);
  EXPECT_EQ(lookup.dtype.value, at::kDouble);
  EXPECT_EQ(lookup.rank.state, FieldState::Nothing);
  EXPECT_EQ(lookup.requires_grad.state, FieldState::Nothing);
}

TEST(SetProfile, RefusesWhatIsNothingOrExcluded) {
  auto graph = test::parse(R"(
graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):
  %y : Tensor = aten::relu(%x)
  return (%y)
)");
  const std::string before = writeGraph(*graph);
  EXPECT_FALSE(setProfile(graph->inputs()[0], seen({5, 5}, false)));
  EXPECT_FALSE(setProfile(graph->inputs()[0], c10::TensorType::get()));
  EXPECT_EQ(writeGraph(*graph), before);
}

// A 0 of the tensor's own, under no_grad as well.
TEST(SetProfile, RequiresGradIsTheTensorsOwn) {
  auto graph = test::parse(R"(
graph(%x : Tensor):
  %f : bool = prim::Constant[value=0]()
  aten::set_grad_enabled(%f)
  %y : Tensor = aten::relu(%x)
  return (%y)
)");
  ASSERT_TRUE(setProfile(graph->inputs()[0], seen({2}, false)));
  const ProfileLookup lookup = lookupProfile(test::useBy(*graph, "aten::relu"));
  ASSERT_TRUE(lookup.requires_grad.known());
  EXPECT_FALSE(lookup.requires_grad.value);
}

// As a pass does that replaces tanh(neg(x)) by another op's result.
TEST(TransferProfile, GoesFromOneValueToItsReplacement) {
  auto graph = test::parse(R"(
graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=1, device=cpu)](%a)
  %y : Tensor = aten::relu(%p)
  return (%y)
)");
  Node* neg = test::useBy(*graph, "aten::neg").user;
  Node* other = graph->create(aten::sin, {graph->inputs()[0]}, 1)->insertAfter(neg);
  ASSERT_TRUE(transferProfile(neg->output(), other->output()));
  const Use relu = test::useBy(*graph, "aten::relu");
  relu.user->replaceInput(0, other->output());
  graph->lint();
  const ProfileLookup lookup = lookupProfile(relu);
  EXPECT_EQ(lookup.state, ProfileState::Concrete);
  EXPECT_TRUE(lookup.requires_grad.value);
  EXPECT_FALSE(lookup.conditional);
}

// Nodes that do not certainly run whenever the value is made say nothing for certain.
TEST(TransferProfile, LeavesBehindWhatIsConditional) {
  auto graph = test::parse(R"(
graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::sin(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=1, device=cpu)](%a)
      %y : Tensor = aten::relu(%p)
      -> (%y)
    block1():
      -> (%b)
  return (%r)
)");
  Value* a = test::useBy(*graph, "aten::neg").user->output();
  Value* b = test::useBy(*graph, "aten::sin").user->output();
  const std::string before = writeGraph(*graph);
  EXPECT_FALSE(transferProfile(a, b));
  EXPECT_EQ(writeGraph(*graph), before);
}

TEST(TransferProfile, NoGradientAcrossModes) {
  auto graph = test::parse(R"(
graph(%x : Tensor):
  %f : bool = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=1, device=cpu)](%a)
  %y : Tensor = aten::relu(%p)
  aten::set_grad_enabled(%f)
  %b : Tensor = aten::neg(%x)
  %z : Tensor = aten::tanh(%b)
  return (%y, %z)
)");
  const Use tanh = test::useBy(*graph, "aten::tanh");
  ASSERT_TRUE(transferProfile(test::useBy(*graph, "aten::neg").user->output(), tanh.user->input(0)));
  const ProfileLookup lookup = lookupProfile(tanh);
  EXPECT_EQ(lookup.state, ProfileState::Partial);
  EXPECT_TRUE(lookup.dtype.known());
  EXPECT_FALSE(lookup.requires_grad.known());
}

}  // namespace
}  // namespace faultline
