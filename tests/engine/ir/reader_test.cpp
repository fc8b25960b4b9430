#include <gmock/gmock.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <cmath>

#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

using testing::expectRoundTrip;
using ::testing::HasSubstr;
using testing::mustRead;
using testing::readError;

Node* firstOfKind(Graph& graph, const std::string& kind) {
  for (Node* node : graph.nodes()) {
    if (kind == node->kind().toQualString()) {
      return node;
    }
  }
  ADD_FAILURE() << "no " << kind;
  return *graph.nodes().begin();
}

// The constant that `text` makes where "%c : TYPE = prim::Constant[value=TEXT]()" stands.
c10::IValue constant(const std::string& type, const std::string& text) {
  const auto graph =
      mustRead("graph():\n  %c : " + type + " = prim::Constant[value=" + text + "]()\n  return (%c)\n");
  expectRoundTrip(*graph);
  return torch::jit::toIValue(graph->outputs().at(0)).value();
}

TEST(Reader, ReadsWhatLibtorchPrints) {
  const auto graph = mustRead(R"IR(
# a dump, with comments and blank lines anywhere

graph(%self.weight : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu),   # the weight
      %x.1 : Tensor):
  %2 : int = prim::Constant[value=1]() # model.py:3:4

  %y.1 : Tensor = aten::add(%self.weight, %x.1, %2), scope: net/linear(odd) # model.py:4:4
   = prim::Print(%y.1)
  %k : bool = prim::Constant[value=0]()
  %4 : Tensor, %5 : Tensor = aten::max(%y.1, %2, %k)
  return (%y.1, %4)
)IR");
  ASSERT_EQ(graph->inputs().size(), 2U);
  EXPECT_EQ(graph->inputs()[0]->debugName(), "self.weight");
  EXPECT_EQ(graph->inputs()[1]->debugName(), "x.1");
  EXPECT_EQ(graph->outputs()[1]->node()->kind().toQualString(), std::string("aten::max"));
  EXPECT_FALSE(graph->outputs()[1]->hasDebugName());
  EXPECT_EQ(firstOfKind(*graph, "prim::Print")->inputs()[0], graph->outputs()[0]);
  EXPECT_EQ(firstOfKind(*graph, "prim::Print")->outputs().size(), 0U);
  expectRoundTrip(*graph);
}

TEST(Reader, BlocksAndTheirInputs) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor, %n : int, %c : bool):
  %t : bool = prim::Constant[value=True]()
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = prim::If(%c)
        block0():
          %d : Tensor = aten::relu(%a)
          -> (%d)
        block1():
          -> (%a)
      -> (%t, %b)
  prim::If(%c)
    block0():
      prim::Print(%r)
      -> ()
    block1():
      -> ()
  () = prim::Print(%r)
  return (%r)
)IR");
  const Node* loop = firstOfKind(*graph, "prim::Loop");
  ASSERT_EQ(loop->blocks().size(), 1U);
  EXPECT_EQ(loop->blocks()[0]->inputs().size(), 2U);
  EXPECT_EQ(loop->blocks()[0]->inputs()[0]->type(), c10::IntType::get());
  EXPECT_EQ(loop->blocks()[0]->outputs()[1]->node()->blocks().size(), 2U);
  expectRoundTrip(*graph);
}

TEST(Reader, IndentationAndLineEndsDoNotMatter) {
  const auto graph = mustRead(
      "graph(%x,%c:bool):%r:Tensor=prim::If(%c)block0():%a:Tensor=aten::relu(%x)->(%a)block1():->(%x)"
      "aten::relu(%r)return(%r)");
  EXPECT_EQ(graph->inputs()[0]->type(), c10::TensorType::get());
  EXPECT_EQ(firstOfKind(*graph, "prim::If")->blocks().size(), 2U);
  expectRoundTrip(*graph);
}

// ---- subgraphs ----

TEST(Reader, TailsBecomeSubgraphs) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  %a : Tensor = prim::DifferentiableGraph_0(%x)
  %b : Tensor = prim::FusionGroup_1[f_real_outputs=1](%a)
  return (%b)
with prim::FusionGroup_1 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
)IR");
  const Node* diff = firstOfKind(*graph, "prim::DifferentiableGraph");
  EXPECT_EQ((*diff->g(c10::attr::Subgraph)->nodes().begin())->kind(), c10::aten::neg);
  const Node* fusion = firstOfKind(*graph, "prim::FusionGroup");
  EXPECT_EQ((*fusion->g(c10::attr::Subgraph)->nodes().begin())->kind(), c10::aten::relu);
  EXPECT_EQ(fusion->i(c10::attr::f_real_outputs), 1);
  expectRoundTrip(*graph);
}

// libtorch numbers the subgraphs of each graph from 0 and prints them right behind it.
TEST(Reader, NestedTailsWithTheSameNumber) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  %a : Tensor = prim::DifferentiableGraph_0(%x)
  %b : Tensor = prim::DifferentiableGraph_1(%a)
  return (%b)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = prim::DifferentiableGraph_0(%x)
  return (%y)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
with prim::DifferentiableGraph_1 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
)IR");
  auto node = graph->nodes().begin();
  const auto outer = node->g(c10::attr::Subgraph);
  const auto inner = (*outer->nodes().begin())->g(c10::attr::Subgraph);
  EXPECT_EQ((*inner->nodes().begin())->kind(), c10::aten::neg);
  ++node;
  EXPECT_EQ((*node->g(c10::attr::Subgraph)->nodes().begin())->kind(), c10::aten::relu);
  expectRoundTrip(*graph);
}

// … while people give every tail a name of its own and sort them as they like.
TEST(Reader, NestedTailsInAnyOrder) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  %a : Tensor = prim::DifferentiableGraph_0(%x)
  %b : Tensor = prim::DifferentiableGraph_1(%a)
  return (%b)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = prim::DifferentiableGraph_2(%x)
  return (%y)
with prim::DifferentiableGraph_1 = graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
with prim::DifferentiableGraph_2 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
)IR");
  const auto outer = graph->nodes().begin()->g(c10::attr::Subgraph);
  EXPECT_EQ(outer->nodes().begin()->g(c10::attr::Subgraph)->nodes().begin()->kind(), c10::aten::neg);
  expectRoundTrip(*graph);
}

TEST(Reader, AttributesOfADifferentiatedNode) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  %a : Tensor = prim::DifferentiableGraph_0[ReverseSubgraph=@backward, f_real_outputs=1, df_input_vjps=[0], df_input_captured_inputs=[], df_input_captured_outputs=[1, 2], df_output_vjps=[0]](%x)
  return (%a)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y)
with @backward = graph(%g : Tensor):
  %y : Tensor = aten::relu(%g)
  return (%y)
)IR");
  const Node* node = *graph->nodes().begin();
  EXPECT_EQ(node->g(c10::attr::ReverseSubgraph)->nodes().begin()->kind(), c10::aten::relu);
  EXPECT_EQ(node->is(c10::attr::df_input_captured_inputs).size(), 0U);
  EXPECT_EQ(node->is(c10::attr::df_input_captured_outputs), (std::vector<int64_t>{1, 2}));
  expectRoundTrip(*graph);
}

TEST(Reader, TailsThatDoNotMatchAreErrors) {
  const std::string head =
      "graph(%x : Tensor):\n  %a : Tensor = prim::DifferentiableGraph_0(%x)\n  return (%a)\n";
  EXPECT_THAT(readError(head), HasSubstr("2:17: no graph for 'prim::DifferentiableGraph_0'"));
  const std::string body = "graph(%x : Tensor):\n  return (%x)\n";
  EXPECT_THAT(readError(head + "with prim::DifferentiableGraph_1 = " + body),
              HasSubstr("2:17: no graph for"));
  EXPECT_THAT(readError(head + "with prim::DifferentiableGraph_0 = " + body + "with prim::X_1 = " + body),
              HasSubstr("6:6: no node above refers to 'prim::X_1'"));
  EXPECT_THAT(readError("graph(%x : Tensor):\n  %a : Tensor = prim::X_0(%x)\n  %b : Tensor = prim::X_0(%x)\n"
                        "  return (%a)\nwith prim::X_0 = " +
                        body),
              HasSubstr("3:17: 'prim::X_0' is referred to twice"));
  EXPECT_THAT(
      readError("graph(%x : Tensor):\n  %a : Tensor = prim::X[ReverseSubgraph=@r](%x)\n  return (%a)\n"),
      HasSubstr("2:41: no graph for '@r'"));
  // A graph that would contain itself.
  EXPECT_THAT(readError(head + "with prim::DifferentiableGraph_0 = " + head), HasSubstr("no graph for"));
  EXPECT_THAT(
      readError("graph(%x : Tensor):\n  %a : Tensor = prim::X[Subgraph=<Graph>](%x)\n  return (%a)\n"),
      HasSubstr("2:34: libtorch's printer has left out"));
}

// An operator may end in a number without being a reference.
TEST(Reader, NumberedOperatorsAreNoReferences) {
  const auto graph = mustRead("graph(%x : Tensor):\n  %a : Tensor = my::op_2(%x)\n  return (%a)\n");
  EXPECT_EQ(graph->nodes().begin()->kind().toQualString(), std::string("my::op_2"));
  expectRoundTrip(*graph);
  // The writer keeps clear of its name when it numbers tails.
  Node* node = *graph->nodes().begin();
  Node* other = graph->create(c10::Symbol::fromQualString("my::op"), {node->output()});
  other->insertAfter(node);
  other->g_(c10::attr::Subgraph, mustRead("graph(%x : Tensor):\n  return (%x)\n"));
  expectRoundTrip(*graph);
}

// ---- constants ----

TEST(ReaderConstants, Scalars) {
  EXPECT_EQ(constant("int", "9223372036854775807").toInt(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(constant("int", "-9223372036854775808").toInt(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(constant("float", "0.10000000000000001").toDouble(), 0.1);
  EXPECT_EQ(constant("float", "10000000000").toDouble(), 1e10);  // as libtorch prints it
  EXPECT_EQ(constant("float", "1e+20").toDouble(), 1e20);
  EXPECT_EQ(constant("float", "4.9406564584124654e-324").toDouble(), 5e-324);
  EXPECT_EQ(constant("float", "inf").toDouble(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(constant("float", "-inf").toDouble(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(constant("float", "nan").toDouble()));
  EXPECT_TRUE(std::isnan(constant("float", "-nan").toDouble()));
  EXPECT_TRUE(std::signbit(constant("float", "-0.").toDouble()));
  EXPECT_TRUE(constant("bool", "1").toBool());
  EXPECT_FALSE(constant("bool", "False").toBool());
  EXPECT_EQ(constant("complex", "1.-2.j").toComplexDouble(), c10::complex<double>(1, -2));
  EXPECT_EQ(constant("complex", "complex(-0., inf)").toComplexDouble().imag(),
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(constant("complex", "-.5j").toComplexDouble(), c10::complex<double>(0, -0.5));
  EXPECT_EQ(constant("complex", "3").toComplexDouble(), c10::complex<double>(3, 0));
  EXPECT_EQ(constant("Device", "\"cuda:1\"").toDevice(), c10::Device("cuda:1"));
  EXPECT_EQ(constant("str", R"("a\"b\\\n\t\001\x7f\377'# %")").toStringRef(), "a\"b\\\n\t\001\x7f\xff'# %");
  EXPECT_TRUE(torch::jit::toIValue(
                  mustRead("graph():\n  %n : NoneType = prim::Constant()\n  return (%n)\n")->outputs()[0])
                  ->isNone());
}

TEST(ReaderConstants, Containers) {
  EXPECT_EQ(constant("int[]", "[1, -2]").toIntVector(), (std::vector<int64_t>{1, -2}));
  EXPECT_TRUE(constant("int[]", "annotate(List[int], [])").toIntVector().empty());
  EXPECT_TRUE(constant("int[]", "[]").toIntVector().empty());
  EXPECT_EQ(constant("float[]", "[1, 2.5, inf]").toDoubleVector()[0], 1.0);
  EXPECT_TRUE(constant("bool[]", "[True, 0]").toBoolList().get(0));
  EXPECT_EQ(constant("str[]", "[\"a\", \"\"]").toListRef()[0].toStringRef(), "a");
  EXPECT_EQ(constant("Tensor[]", "[tensor(Float(2), [1., 2.])]").toTensorVector()[0].numel(), 2);
  EXPECT_TRUE(constant("Tensor[]", "[]").toTensorVector().empty());
  EXPECT_EQ(constant("complex[]", "[1.+2.j]").toComplexDoubleVector()[0], c10::complex<double>(1, 2));
  EXPECT_TRUE(constant("int?[]", "[1, None]").toListRef()[1].isNone());
  EXPECT_EQ(constant("int[][]", "[[1], []]").toListRef()[0].toIntVector()[0], 1);
  EXPECT_EQ(constant("(int, float, str)", "(1, 2.5, \"x\")").toTupleRef().elements()[1].toDouble(), 2.5);
  EXPECT_EQ(constant("(int)", "(1,)").toTupleRef().elements().size(), 1U);
  EXPECT_EQ(constant("()", "()").toTupleRef().elements().size(), 0U);
  EXPECT_EQ(constant("Dict(str, int)", "{\"b\": 2, \"a\": 1}").toGenericDict().at("b").toInt(), 2);
  EXPECT_EQ(constant("Dict(str, Tensor)", "annotate(Dict[str, Tensor],{})").toGenericDict().size(), 0U);
  EXPECT_EQ(constant("(int[], Dict(int, float[]))", "([1], {3: [1.]})").toTupleRef().elements().size(), 2U);
  EXPECT_EQ(constant("Any[]", "[1, 2.5, annotate(int[], [3]), (1, \"a\")]").toListRef()[2].toIntVector()[0],
            3);
  EXPECT_EQ(constant("Device[]", "[torch.device(\"cpu\")]").toListRef()[0].toDevice(), c10::Device("cpu"));
}

at::Tensor tensorConstant(const std::string& text, const std::string& type = "Tensor") {
  return constant(type, text).toTensor();
}

TEST(ReaderConstants, Tensors) {
  EXPECT_TRUE(tensorConstant("tensor(Float(2, 3), [0., 1., 2., 3., 4., 5.])")
                  .equal(at::arange(6, at::kFloat).view({2, 3})));
  EXPECT_EQ(tensorConstant("tensor(Long(), [-9223372036854775808])").item<int64_t>(),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(tensorConstant("tensor(Bool(3), [True, 0, 1])").sum().item<int64_t>(), 2);
  EXPECT_EQ(tensorConstant("tensor(ComplexFloat(1), [complex(nan, -0.)])").scalar_type(), at::kComplexFloat);
  EXPECT_EQ(tensorConstant("tensor(BFloat16(2), [0.1, inf])").scalar_type(), at::kBFloat16);
  EXPECT_EQ(tensorConstant("tensor(Half(0, 4), [])").sizes(), (at::IntArrayRef{0, 4}));
  EXPECT_EQ(tensorConstant("tensor(UInt16(1), [65535])").scalar_type(), at::kUInt16);
  const at::Tensor turned =
      tensorConstant("tensor(Double(2, 3, strides=[1, 2]), storage=[0., 1., 2., 3., 4., 5.])");
  EXPECT_TRUE(turned.equal(at::arange(6, at::kDouble).view({3, 2}).t()));
  EXPECT_EQ(turned.strides(), (at::IntArrayRef{1, 2}));
  const at::Tensor expanded =
      tensorConstant("tensor(Float(1000000000, 3, strides=[0, 1]), storage=[0., 1., 2.])");
  EXPECT_EQ(expanded.numel(), 3000000000);
  EXPECT_TRUE(tensorConstant("tensor(Float(2, requires_grad=1), [1., 2.])").requires_grad());
  EXPECT_FALSE(tensorConstant("tensor(undefined)").defined());
  EXPECT_TRUE(tensorConstant("tensor(Float(2, 2, device=meta))").is_meta());
}

TEST(ReaderConstants, TensorsAsLibtorchPrintsThem) {
  EXPECT_TRUE(tensorConstant(" 0  1  2 [ CPUFloatType{3} ]").equal(at::arange(3, at::kFloat)));
  EXPECT_TRUE(tensorConstant("-1 -2 [ CPULongType{2} ]").equal(at::arange(-1, -3, -1)));
  EXPECT_TRUE(tensorConstant("(1,.,.) =   0  1   2  3  (2,.,.) =   4  5   6  7 [ CPULongType{2,2,2} ]")
                  .equal(at::arange(8).view({2, 2, 2})));
  EXPECT_TRUE(tensorConstant("Columns 1 to 2 0  1  3  4  Columns 3 to 3 2  5 [ CPULongType{2,3} ]")
                  .equal(at::arange(6).view({2, 3})));
  EXPECT_TRUE(tensorConstant("1e+02  * 0.5  1.0 [ CPUDoubleType{2} ]")
                  .equal(at::arange(50, 101, 50).to(at::kDouble)));
  EXPECT_EQ(tensorConstant("[ CPUFloatType{0,3} ]").sizes(), (at::IntArrayRef{0, 3}));
  EXPECT_TRUE(std::isinf(tensorConstant("inf nan -0 [ CPUDoubleType{3} ]")[0].item<double>()));
  EXPECT_EQ(tensorConstant("{2.5}").scalar_type(), at::kDouble);
  EXPECT_EQ(tensorConstant("{1}", "Float(1, 1, strides=[1, 1], requires_grad=0, device=cpu)").dim(), 2);
  EXPECT_EQ(tensorConstant("{9007199254740993}").item<int64_t>(), 9007199254740993);
  EXPECT_EQ(tensorConstant("{(1,-2)}").item<c10::complex<double>>(), c10::complex<double>(1, -2));
}

TEST(ReaderConstants, Errors) {
  const auto error = [](const std::string& type, const std::string& text) {
    return readError("graph():\n  %c : " + type + " = prim::Constant[value=" + text + "]()\n  return (%c)\n");
  };
  EXPECT_EQ(error("int", "77777777777777777777777777"),
            "2:35: 77777777777777777777777777 does not fit into 64 bits");
  EXPECT_THAT(error("float", "1e999"), HasSubstr("beyond what the type can hold"));
  EXPECT_THAT(error("complex", "1.+1e999j"), HasSubstr("2:42: 1e999 is beyond what the type can hold"));
  EXPECT_THAT(error("Tensor", "<Tensor>"), HasSubstr("2:38: libtorch's printer has left out"));
  EXPECT_THAT(error("Tensor", "tensor(Float(3), [1., 2.])"), HasSubstr("expected 3 elements, found 2"));
  EXPECT_THAT(error("Tensor", "tensor(Float(1), [1., 2.])"), HasSubstr("expected 1 elements, found more"));
  EXPECT_THAT(error("Tensor", "tensor(Float(1000000000000, 1000000000000), [])"), HasSubstr("too large"));
  EXPECT_THAT(error("Tensor", "tensor(Float(1000000000000), [])"),
              HasSubstr("expected 1000000000000 elements, found 0"));
  EXPECT_THAT(error("Tensor", "tensor(Float(4611686018427387904, 4, strides=[0, 0]), storage=[1.])"),
              HasSubstr("torch cannot make this tensor"));
  EXPECT_THAT(error("Tensor", "tensor(Float(*), [])"), HasSubstr("every size"));
  EXPECT_THAT(error("Tensor", "tensor(Char(1), [128])"), HasSubstr("expected an int from -128 to 127"));
  EXPECT_THAT(error("Tensor", "tensor(Float(2, 2, strides=[1, 2]), [1., 2., 3., 4.])"),
              HasSubstr("storage=[…]"));
  EXPECT_THAT(error("Tensor", "tensor(Float(2), base64=\"AAAA\")"),
              HasSubstr("expected 8 bytes as base64, found 3"));
  EXPECT_THAT(error("Tensor", "tensor(Float(2), base64=\"A=AA\")"), HasSubstr("no base64"));
  EXPECT_THAT(error("Tensor", "tensor(QInt8(1), [1])"), HasSubstr("quantized"));
  EXPECT_THAT(error("Tensor", "tensor(Float(1, device=cuda:0), [1.])"),
              HasSubstr("torch cannot make this tensor"));
  EXPECT_THAT(error("Tensor", "1 2 [ CPUFloatType{3} ]"), HasSubstr("expected 3 elements, found 2"));
  EXPECT_THAT(error("int[]", "[1, \"a\"]"), HasSubstr("2:41: expected a value of type int"));
  EXPECT_THAT(error("Any[]", "[[1]]"), HasSubstr("must say what it is"));
  EXPECT_THAT(error("(int, int)", "(1,)"), HasSubstr("expected a value of type (int, int)"));
  EXPECT_THAT(error("Dict(str, int)", "{\"a\": 1, \"a\": 2}"), HasSubstr("in the dict already"));
  EXPECT_THAT(error("str", "\"a"), HasSubstr("2:35: expected '\"' at the end of this string"));
  EXPECT_THAT(error("str", "\"\\q\""), HasSubstr("unknown escape"));
  EXPECT_THAT(error("Device[]", "[torch.device(\"gpu\")]"), HasSubstr("unknown device \"gpu\""));
}

// ---- attributes ----

TEST(ReaderAttributes, EveryKind) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  my::op[alpha=1.5, axes=[1, 2], ratio:fs=[1, 2], a:f=1, b:c=1.+2.j, c:cs=[1.+2.j, 3], d:s="x", e:ss=[], f:t=tensor(Float(), [1.]), g:ts=[tensor(Float(), [1.])], h:ty=(int, Tensor), i:tys=[Tensor, (int, int)[]], j:ival=annotate(int[], [1]), k:ival=None, l:ival=(1, torch.device("cpu")), m:gs=[@m_0, @m_1], types=[Tensor(requires_grad=1), Tensor], n:g=None, value=True]()
  return (%x)
with @m_1 = graph(%x : Tensor):
  return (%x)
with @m_0 = graph():
  return ()
)IR");
  const Node* node = *graph->nodes().begin();
  EXPECT_EQ(node->f(c10::attr::alpha), 1.5);
  EXPECT_EQ(node->is(c10::attr::axes), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(node->fs(c10::attr::ratio), (std::vector<double>{1, 2}));
  EXPECT_EQ(node->f(c10::Symbol::attr("a")), 1.0);
  EXPECT_EQ(node->cs(c10::Symbol::attr("c"))[1], c10::complex<double>(3, 0));
  EXPECT_TRUE(node->ss(c10::Symbol::attr("e")).empty());
  EXPECT_EQ(node->ty(c10::Symbol::attr("h"))->kind(), c10::TypeKind::TupleType);
  EXPECT_EQ(node->tys(c10::Symbol::attr("i"))[1]->kind(), c10::TypeKind::ListType);
  EXPECT_EQ(node->ival(c10::Symbol::attr("j")).toIntVector(), (std::vector<int64_t>{1}));
  EXPECT_EQ(node->gs(c10::Symbol::attr("m"))[1]->inputs().size(), 1U);
  EXPECT_EQ(node->tys(c10::Symbol::attr("types"))[0]->expectRef<c10::TensorType>().requiresGrad(), true);
  EXPECT_EQ(node->i(c10::attr::value), 1);
  expectRoundTrip(*graph);
}

TEST(ReaderAttributes, EmptyListsAsLibtorchPrintsThem) {
  const auto graph = mustRead(
      "graph():\n  my::op[axes=annotate(List[int], []), alpha=annotate(List[float], []), beta=[]]()\n  "
      "return ()\n");
  const Node* node = *graph->nodes().begin();
  EXPECT_TRUE(node->is(c10::attr::axes).empty());
  EXPECT_TRUE(node->fs(c10::attr::alpha).empty());
  EXPECT_TRUE(node->is(c10::attr::beta).empty());
  expectRoundTrip(*graph);
}

TEST(ReaderAttributes, ProfileNodes) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(2, *, requires_grad=0, device=cpu), seen_none=0, faultline_clone=1](%x)
  prim::profile()
   = prim::profile()
  return (%p)
)IR");
  const Node* node = *graph->nodes().begin();
  EXPECT_EQ(node->ty(c10::attr::profiled_type)->expectRef<c10::TensorType>().dim(), 2U);
  EXPECT_EQ(node->i(c10::attr::seen_none), 0);
  expectRoundTrip(*graph);
}

TEST(ReaderAttributes, Errors) {
  const auto error = [](const std::string& attributes) {
    return readError("graph():\n  my::op[" + attributes + "]()\n  return ()\n");
  };
  EXPECT_THAT(error("alpah=1"), HasSubstr("2:10: unknown attribute 'alpah' (did you mean 'alpha'?)"));
  EXPECT_THAT(error("alpha=1, alpha=2"), HasSubstr("2:19: attribute 'alpha' stands twice"));
  EXPECT_THAT(error("alpha:q=1"), HasSubstr("2:16: expected the kind of an attribute"));
  EXPECT_THAT(error("alpha:i=1.5"), HasSubstr("2:18: expected an int"));
  EXPECT_THAT(error("alpha:is=[1.5]"), HasSubstr("2:20: expected an int"));
  EXPECT_THAT(error("alpha=[1, \"a\"]"), HasSubstr("must say what it is"));
  EXPECT_THAT(error("alpha=Flaot(2)"), HasSubstr("2:16: unknown type 'Flaot' (did you mean 'Float'?)"));
  EXPECT_THAT(error("alpha=object(0x1)"), HasSubstr("object cannot be read"));
  EXPECT_THAT(error("alpha="), HasSubstr("2:16: expected a value, found ']'"));
}

// ---- errors of the graph itself ----

TEST(ReaderErrors, HaveLineColumnAndExpectation) {
  EXPECT_EQ(readError(""), "1:1: expected 'graph' at the beginning of a graph, found the end of the text");
  EXPECT_EQ(readError("# nothing\n"),
            "2:1: expected 'graph' at the beginning of a graph, found the end of the text");
  EXPECT_EQ(readError("graph(%x : Tensor):\n"),
            "2:1: expected a node or 'return', found the end of the text");
  EXPECT_EQ(readError("graph(%x : Tensor)\n  return (%x)"),
            "2:3: expected ':' behind inputs, found 'return'");
  EXPECT_EQ(readError("graph(%x : Tensor):\n  return (%y)\n"),
            "2:11: '%y' is not made before it is used (did you mean 'x'?)");
  EXPECT_EQ(readError("graph(%x : Tensor, %x : int):\n  return ()\n"), "1:20: '%x' is made twice");
  EXPECT_EQ(readError("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%y)\n  return (%y)\n"),
            "2:28: '%y' is not made before it is used (did you mean 'x'?)");
  EXPECT_EQ(readError("graph(%x : Tensor):\n  %x : Tensor = aten::relu(%x)\n  return (%x)\n"),
            "2:3: '%x' is made twice");
  EXPECT_EQ(readError("graph():\n  %a : Tensor = relu()\n"),
            "2:21: expected '::' behind the namespace of a node's kind, found '('");
  EXPECT_EQ(readError("graph():\n  return ()\njunk"),
            "3:1: expected 'with' or the end of the text, found 'junk'");
  EXPECT_EQ(readError("graph():\n  \x01"), "2:3: byte 0x01 cannot stand in IR text outside of a string");
  EXPECT_EQ(readError("graph():\n  attr::x()\n  return ()\n"), "2:3: 'attr' is no namespace of operators");
  EXPECT_THAT(readError("graph():\n  prim::Return()\n  return ()\n"), HasSubstr("made by libtorch only"));
  EXPECT_THAT(readError("graph():\n  %a : Tensor = ^Fn(1)()\n  return ()\n"), HasSubstr("Python"));
  EXPECT_THAT(readError("graph():\n  prim::PythonOp()\n  return ()\n"), HasSubstr("Python"));
  EXPECT_THAT(readError("graph(%c : bool):\n  prim::If(%c)\n    block1():\n      -> ()\n  return ()\n"),
              HasSubstr("3:5: expected 'block0' next, found 'block1'"));
  EXPECT_THAT(readError("graph(%m : __torch__.Net):\n  return ()\n"),
              HasSubstr("1:12: type '__torch__…' needs the module"));
  EXPECT_THAT(readError("graph(%\"\" : int):\n  return ()\n"), HasSubstr("needs a name"));
  EXPECT_THAT(readError("graph(%x.1234567890123456789 : int):\n  return ()\n"),
              HasSubstr("at most 18 digits"));
}

TEST(ReaderErrors, CountLinesFromWhereTheTextBegan) {
  const auto graph = readGraph("graph():\n  return (%x)\n", 41);
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().where->line, 42U);
  EXPECT_EQ(graph.error().where->column, 11U);
  EXPECT_EQ(graph.error().kind, ErrorKind::Syntax);
  // A tail makes the text be looked through twice.
  EXPECT_EQ(readGraph("graph():\n  return ()\nwith @ \x01", 41).error().where->line, 43U);
}

TEST(ReaderErrors, OutputsOfANodeAreNotSeenByItsBlocks) {
  EXPECT_THAT(readError("graph(%c : bool):\n  %r : bool = prim::If(%c)\n    block0():\n      -> (%r)\n"),
              HasSubstr("4:11: '%r' is not made before it is used"));
  EXPECT_THAT(
      readError("graph(%c : bool):\n  %r : bool = prim::If(%c)\n    block0():\n      %r : bool = my::op()\n"),
      HasSubstr("4:7: '%r' is made twice"));
}

// The body of a function is not part of the text, but graphs that keep an unused one (every inlined module
// does) run.
TEST(Reader, FunctionsAreKnownByNameOnly) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor):
  %f : Function = prim::Constant[name="relu", fallback=1]()
  %y : Tensor = aten::relu(%x)
  return (%y)
)IR");
  expectRoundTrip(*graph);
  torch::jit::Stack stack = {at::ones({2})};
  torch::jit::InterpreterState(torch::jit::Code(graph, "f")).run(stack);
  EXPECT_EQ(stack.size(), 1U);

  const auto caller = mustRead(R"IR(
graph(%x : Tensor):
  %f : Function = prim::Constant[name="relu"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  return (%y)
)IR");
  expectRoundTrip(*caller);
  EXPECT_FALSE(verifyGraph(*caller));
  stack = {at::ones({2})};
  EXPECT_ANY_THROW(torch::jit::InterpreterState(torch::jit::Code(caller, "f")).run(stack));
}

// What a sibling block made is known, as in libtorch's parser: whether it may be used is for verifyGraph to
// say.
TEST(Reader, ValuesOfSiblingBlocksAreRead) {
  EXPECT_EQ(readError(R"IR(graph(%x : Tensor, %k : bool):
  %o : Tensor = prim::If(%k)
    block0():
      %a : Tensor = aten::exp(%x)
      -> (%a)
    block1():
      -> (%x)
  %r : Tensor = aten::neg(%a)
  return (%r, %o)
)IR"),
            "no error");
}

TEST(ReaderErrors, DeepNestingIsRefused) {
  std::string blocks = "graph(%c : bool):\n";
  for (int i = 0; i < 10000; ++i) {
    blocks += "prim::If(%c) block0(): ";
  }
  EXPECT_THAT(readError(blocks), HasSubstr("blocks are nested deeper than 256 levels"));

  std::string tails = "graph(%x : Tensor):\n  prim::X_0(%x)\n  return ()\n";
  for (int i = 0; i < 10000; ++i) {
    tails += "with prim::X_" + std::to_string(i) + " = graph(%x : Tensor):\n  prim::X_" +
             std::to_string(i + 1) + "(%x)\n  return ()\n";
  }
  EXPECT_THAT(readError(tails), HasSubstr("graphs are nested deeper than 64 levels"));

  const std::string many(100000, '(');
  const std::string brackets(100000, '[');
  std::string lists = "Tensor";
  for (int i = 0; i < 100000; ++i) {
    lists += "[]";
  }
  EXPECT_THAT(readError("graph(%x : " + many), HasSubstr("types are nested deeper than 64 levels"));
  EXPECT_THAT(readError("graph(%x : " + lists), HasSubstr("types are nested deeper than 64 levels"));
  EXPECT_THAT(readError("graph():\n  my::op[axes=" + brackets),
              HasSubstr("values are nested deeper than 64 levels"));
  EXPECT_THAT(readError("graph():\n  my::op[axes=" + many),
              HasSubstr("values are nested deeper than 64 levels"));
}

}  // namespace
}  // namespace faultline
