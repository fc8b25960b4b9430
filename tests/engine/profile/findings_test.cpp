// Each kind of findings.def: a graph that has it and a near one that has not.
#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

std::vector<std::string> kinds(Graph& graph, ValidateOptions options = {}) {
  std::vector<std::string> found;
  for (const ProfileFinding& finding : findProfileViolations(graph, options)) {
    found.push_back(finding.kind);
    EXPECT_NE(finding.message.find("; "), std::string::npos)
        << finding.message;  // what, the facts, what to do
    EXPECT_FALSE(finding.node == nullptr && finding.value == nullptr);
  }
  return found;
}

std::vector<std::string> kinds(const std::string& text, ValidateOptions options = {}) {
  auto graph = test::parse(text);
  propagateProfileNode(graph);
  return kinds(*graph, options);
}

using Kinds = std::vector<std::string>;

TEST(Findings, MissingType) {
  auto graph = std::make_shared<Graph>();
  Node* node = graph->insertNode(graph->create(torch::jit::prim::profile, {graph->addInput("x")}, 1));
  EXPECT_EQ(kinds(*graph), Kinds{"missing_type"});
  node->ty_(torch::jit::attr::profiled_type, c10::TensorType::get());
  EXPECT_EQ(kinds(*graph), Kinds{});
}

TEST(Findings, WrongArity) {
  auto graph = std::make_shared<Graph>();
  Value* x = graph->addInput("x");
  Value* y = graph->addInput("y");
  graph->insertNode(graph->create(torch::jit::prim::profile, {x, y}, 1));
  EXPECT_EQ(kinds(*graph), Kinds{"wrong_arity"});
  auto nothing_in = std::make_shared<Graph>();
  nothing_in->insertNode(nothing_in->create(torch::jit::prim::profile, 1));
  EXPECT_EQ(kinds(*nothing_in), Kinds{"wrong_arity"});
}

TEST(Findings, StaticType) {
  const std::string text = R"(
graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):
  %p : Tensor = prim::profile[profiled_type=TYPE(2, 3, strides=[3, 1], requires_grad=0, device=cpu)](%x)
  %y : Tensor = aten::relu(%p)
  return (%y)
)";
  auto with = [&](const std::string& type) { return std::string(text).replace(text.find("TYPE"), 4, type); };
  EXPECT_EQ(kinds(with("Double")), Kinds{"static_type"});
  EXPECT_EQ(kinds(with("Float")), Kinds{});
}

TEST(Findings, ContradictionInOneBlock) {
  const std::string text = R"(
graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)](%x)
  %y : Tensor = aten::relu(%p)
  %q : Tensor = prim::profile[profiled_type=SECOND](%x)
  %z : Tensor = aten::tanh(%q)
  return (%y, %z)
)";
  auto with = [&](const std::string& type) {
    return std::string(text).replace(text.find("SECOND"), 6, type);
  };
  EXPECT_EQ(kinds(with("Float(2, 4, strides=[4, 1], requires_grad=0, device=cpu)")), Kinds{"contradiction"});
  EXPECT_EQ(kinds(with("Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)")), Kinds{});
  EXPECT_EQ(kinds(with("Float(*, 3, strides=[3, 1], requires_grad=0, device=cpu)")),
            Kinds{});                         // a fact that varies
  EXPECT_EQ(kinds(with("Tensor")), Kinds{});  // an unseen one
}

TEST(Findings, ContradictionWithADominatingNode) {
  const std::string text = R"(
graph(%x : Tensor, %c : bool):
  %p : Tensor = prim::profile[profiled_type=OUTER](%x)
  %r : Tensor = prim::If(%c)
    block0():
      %q : Tensor = prim::profile[profiled_type=Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)](%x)
      -> (%q)
    block1():
      %s : Tensor = prim::profile[profiled_type=Float(5, 3, strides=[3, 1], requires_grad=0, device=cpu)](%x)
      -> (%s)
  return (%p, %r)
)";
  auto with = [&](const std::string& type) { return std::string(text).replace(text.find("OUTER"), 5, type); };
  // It contains both: exclusive arms never contradict each other.
  EXPECT_EQ(kinds(with("Float(*, 3, strides=[3, 1], requires_grad=0, device=cpu)")), Kinds{});
  EXPECT_EQ(kinds(with("Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)")), Kinds{"contradiction"});
}

TEST(Findings, NotAcrossAWrite) {
  EXPECT_EQ(kinds(R"(
graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)](%x)
  %y : Tensor = aten::relu(%p)
  %t : Tensor = aten::t_(%x)
  %q : Tensor = prim::profile[profiled_type=Float(3, 2, strides=[1, 3], requires_grad=0, device=cpu)](%x)
  %z : Tensor = aten::tanh(%q)
  return (%y, %z)
)"),
            Kinds{});
}

TEST(Findings, NotAcrossAChangeOfGradMode) {
  const std::string text = R"(
graph(%x : Tensor):
  %f : bool = prim::Constant[value=0]()
  %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=1, device=cpu)](%x)
  %y : Tensor = aten::relu(%p)
  MODE
  %q : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=0, device=cpu)](%x)
  %z : Tensor = aten::tanh(%q)
  return (%y, %z)
)";
  auto with = [&](const std::string& mode) { return std::string(text).replace(text.find("MODE"), 4, mode); };
  EXPECT_EQ(kinds(with("aten::set_grad_enabled(%f)")), Kinds{});
  EXPECT_EQ(kinds(with("")), Kinds{"contradiction"});
}

TEST(Findings, Boundary) {
  const std::string text = R"(
graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=1, device=cpu)](%x)
  %y : Tensor = prim::DifferentiableGraph_0(%p)
  return (%y)
with prim::DifferentiableGraph_0 = graph(%a : Tensor):
  %q : Tensor = prim::profile[INSIDE](%a)
  %z : Tensor = aten::sigmoid(%q)
  return (%z)
)";
  auto with = [&](const std::string& mode) {
    return std::string(text).replace(text.find("INSIDE"), 6, mode);
  };
  const std::string type = "profiled_type=Float(2, strides=[1], requires_grad=0, device=cpu)";
  EXPECT_EQ(kinds(with(type)), Kinds{"boundary"});
  EXPECT_EQ(kinds(with(type + ", faultline_inside=1")), Kinds{});
}

TEST(Findings, CounterOnlyWhenAboutToRun) {
  const std::string text = R"(
graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, strides=[1], requires_grad=0, device=cpu)](%x)
  %y : Tensor = aten::relu(%p)
   = prim::profile()
  return (%y)
)";
  EXPECT_EQ(kinds(text), Kinds{});
  EXPECT_EQ(kinds(text, {.about_to_run = true}), Kinds{"counter"});
}

TEST(Findings, AnswersThatAreNotAtTheirUses) {
  auto graph = test::parseCase("02-siblings-and-nesting.ir");
  EXPECT_FALSE(validateProfileNode(graph));
  for (const std::string& kind : kinds(*graph)) EXPECT_EQ(kind, "not_at_feed");
  EXPECT_EQ(kinds(*graph).size(), 4u);  // sin, the inner block's return, mul, the graph's return
  propagateProfileNode(graph);
  EXPECT_TRUE(validateProfileNode(graph));
}

}  // namespace
}  // namespace faultline
