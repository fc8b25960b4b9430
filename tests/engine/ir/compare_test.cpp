#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "engine/ir/tensor_data.h"
#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;
using testing::mustRead;

std::string difference(const std::string& a, const std::string& b) {
  const auto graph_a = mustRead(a);
  const auto graph_b = mustRead(b);
  const std::string text = describeGraphDifference(*graph_a, *graph_b);
  EXPECT_EQ(text.empty(), describeGraphDifference(*graph_b, *graph_a).empty()) << "not symmetric: " << text;
  EXPECT_EQ(graphsEqual(*graph_a, *graph_b), text.empty());
  return text;
}

const std::string kBase = R"IR(
graph(%x : Tensor, %c : bool):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::add(%x, %x, %one)
      -> (%p)
    block1():
      -> (%x)
  %b : Tensor = prim::DifferentiableGraph_0[f_real_outputs=1](%a)
  return (%b)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
)IR";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kBase;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Compare, NamesDoNotMatter) {
  std::string other = kBase;
  for (size_t at = other.find('%'); at != std::string::npos; at = other.find('%', at + 1)) {
    other.insert(at + 1, "other.");
  }
  EXPECT_EQ(difference(kBase, other), "");
  EXPECT_EQ(difference(kBase, kBase), "");
}

TEST(Compare, SaysWhereGraphsDiffer) {
  EXPECT_EQ(difference(kBase, replaced("value=1", "value=2")),
            "attribute 'value' of %one = prim::Constant() differs");
  EXPECT_EQ(
      difference(kBase, replaced("aten::neg(%x)", "aten::relu(%x)")),
      "%y = aten::neg(%x) against %y = aten::relu(%x) in Subgraph of %b = prim::DifferentiableGraph(%a)");
  EXPECT_EQ(difference(kBase, replaced("aten::add(%x, %x, %one)", "aten::mul(%x, %x)")),
            "%p = aten::add(%x, %x, %one) against %p = aten::mul(%x, %x) in block 0 of %a = prim::If(%c)");
  EXPECT_EQ(difference(kBase, replaced("-> (%x)", "-> (%one)")),
            "input 0 of the return (%x) is another value than that of the return (%one) in block 1 of %a = "
            "prim::If(%c)");
  EXPECT_EQ(difference(kBase, replaced("%x : Tensor, %c", "%x : Float(2), %c")),
            "input 0 has type Tensor against Float(2)");
  EXPECT_EQ(difference(kBase, replaced("%b : Tensor", "%b : Tensor(requires_grad=1)")),
            "output 0 has type Tensor against Tensor(requires_grad=1) of %b = prim::DifferentiableGraph(%a)");
  EXPECT_EQ(
      difference(kBase, replaced("[f_real_outputs=1]", "")),
      "attribute 'f_real_outputs' of %b = prim::DifferentiableGraph(%a) is missing in the second graph");
  EXPECT_EQ(difference(kBase, replaced("  return (%b)", "  prim::Print(%b)\n  return (%b)")),
            "prim::Print(%b) stands only in the second graph");
  EXPECT_EQ(difference(kBase, replaced("return (%b)", "return (%b, %b)")),
            "the return (%b) has 1 inputs against 2 of the return (%b, %b)");
  EXPECT_EQ(difference(kBase, replaced(", %c : bool", ", %c : bool, %d : bool")), "2 inputs against 3");
}

std::string constantDifference(const std::string& a, const std::string& b) {
  const auto text = [](const std::string& value) {
    return "graph():\n  my::op[" + value + "]()\n  return ()\n";
  };
  return difference(text(a), text(b));
}

TEST(Compare, AttributesByContent) {
  const std::vector<std::string> distinct = {
      "value=1",
      "value=2",
      "value=1.",
      "value=0.",
      "value=-0.",
      "value=inf",
      "value=nan",
      "value=\"a\"",
      "value=[1, 2]",
      "value=[1., 2.]",
      "value=[\"a\"]",
      "value=complex(nan, 1.)",
      "value=complex(0., nan)",
      "value=[1.+2.j]",
      "value=Tensor",
      "value=Tensor(requires_grad=0)",
      "value=[Tensor]",
      "value=tensor(Float(2), [1., 2.])",
      "value=tensor(Float(2), [1., -0.])",
      "value=tensor(Float(2), [1., 0.])",
      "value=tensor(Float(2), [1., nan])",
      "value=tensor(Double(2), [1., 2.])",
      "value=tensor(Float(1, 2), [1., 2.])",
      "value=tensor(Float(2, requires_grad=1), [1., 2.])",
      "value=tensor(Float(2, 2, strides=[1, 2]), storage=[1., 2., 1., 2.])",
      "value=tensor(Float(2, 2), [1., 1., 2., 2.])",
      "value=tensor(ComplexFloat(1), [complex(nan, 1.)])",
      "value=tensor(ComplexFloat(1), [complex(nan, 2.)])",
      "value=tensor(undefined)",
      "value=[tensor(Float(1), [1.])]",
      "value:ival=1",
      "value:ival=None",
      "value:ival=annotate(int[], [])",
      "value:ival=annotate(float[], [])",
      "value:ival=annotate(Any[], [1])",
      "value:ival=annotate(Any[], [1.])",
      "value:ival=(1, 2)",
      "value:ival=(1, 3)",
      "value:ival=annotate(Dict(str, int), {\"a\": 1, \"b\": 2})",
      "value:ival=annotate(Dict(str, int), {\"b\": 2, \"a\": 1})",
      "value:ival=torch.device(\"cpu\")",
      "value:ival=torch.device(\"meta\")",
      "value:g=None",
      "value:gs=[]",
      "axis=1",
  };
  for (const std::string& a : distinct) {
    for (const std::string& b : distinct) {
      EXPECT_EQ(constantDifference(a, b).empty(), a == b)
          << a << " / " << b << ": " << constantDifference(a, b);
    }
  }
}

TEST(Compare, GraphAttributes) {
  const auto text = [](const std::string& op) {
    return "graph():\n  my::op[value=[@a, @b]]()\n  return ()\nwith @a = graph():\n  return ()\n"
           "with @b = graph(%x : Tensor):\n  %y : Tensor = aten::" +
           op + "(%x)\n  return (%y)\n";
  };
  EXPECT_EQ(difference(text("relu"), text("relu")), "");
  EXPECT_THAT(difference(text("relu"), text("neg")), HasSubstr("in value of my::op()"));
}

// An invalid graph has its equals as well: comparison must not depend on order of definition.
TEST(Compare, UsesBeforeDefinition) {
  const std::string text =
      "graph(%x : Tensor):\n  %a : Tensor = aten::relu(%x)\n  %b : Tensor = aten::neg(%a)\n  return (%b)\n";
  const auto broken = [&] {
    auto graph = mustRead(text);
    Node* relu = *graph->nodes().begin();
    relu->moveAfter(relu->next());
    return graph;
  };
  EXPECT_EQ(describeGraphDifference(*broken(), *broken()), "");
  auto other = broken();
  (*other->nodes().begin())->replaceInput(0, other->inputs()[0]);
  EXPECT_NE(describeGraphDifference(*broken(), *other), "");
  EXPECT_NE(describeGraphDifference(*broken(), *mustRead(text)), "");
}

TEST(TensorData, SpanAndReachableElements) {
  EXPECT_EQ(storageSpan({2, 3}, {3, 1}, 4), 6U);
  EXPECT_EQ(storageSpan({2, 0}, {3, 1}, 4), 0U);
  EXPECT_EQ(storageSpan({}, {}, 4), 1U);
  EXPECT_EQ(storageSpan({int64_t{1} << 62, 2}, {0, 1}, 8), 2U);
  EXPECT_EQ(storageSpan({int64_t{1} << 62}, {1}, 8), std::nullopt);
  EXPECT_EQ(reachableElements({2, 3}, {4, 1}, 7), (std::vector<uint8_t>{1, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(reachableElements({3, 5}, {2, 0}, 5), (std::vector<uint8_t>{1, 0, 1, 0, 1}));
  EXPECT_EQ(reachableElements({7}, {1}, 7), std::vector<uint8_t>(7, 1));
}

TEST(TensorData, ElementsBetweenDoNotCount) {
  at::Tensor a = at::zeros({2, 4});
  at::Tensor b = at::zeros({2, 4});
  b[0][3] = 1;
  EXPECT_TRUE(sameTensor(a.slice(1, 0, 3), b.slice(1, 0, 3)));
  EXPECT_FALSE(sameTensor(a, b));
  EXPECT_FALSE(sameTensor(a.slice(1, 0, 3), b.slice(1, 1, 4)));
  EXPECT_TRUE(sameTensor(a.to_sparse(), a.to_sparse()));
  EXPECT_FALSE(sameTensor(a.to_sparse(), b.to_sparse()));
  const at::Tensor complex = at::rand({2, 2}, at::kComplexFloat);
  EXPECT_TRUE(sameTensor(complex.conj(), complex.conj_physical()));
}

}  // namespace
}  // namespace faultline
