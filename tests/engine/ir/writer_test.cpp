#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "engine/ir/base64.h"
#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

using testing::expectRoundTrip;
using ::testing::HasSubstr;
using namespace std::string_literals;
using testing::mustRead;

// A graph that returns one constant.
std::shared_ptr<Graph> constantGraph(const c10::IValue& value) {
  auto graph = std::make_shared<Graph>();
  graph->registerOutput(graph->insertConstant(value));
  return graph;
}

TEST(Writer, LooksLikeWhatLibtorchPrints) {
  const std::string text = R"IR(graph(%x.1 : Float(2, strides=[1], requires_grad=1, device=cpu),
      %c : bool):
  %2 : int = prim::Constant[value=1]()
  %r : Tensor = prim::If(%c)
    block0():
      %4 : Tensor = aten::add(%x.1, %x.1, %2)
      -> (%4)
    block1():
      -> (%x.1)
  prim::Print(%r)
  %5 : Tensor = prim::DifferentiableGraph_0(%r)
  return (%5)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %1 : Tensor = aten::neg(%x)
  return (%1)
)IR";
  EXPECT_EQ(writeGraph(*mustRead(text)), text);
}

TEST(Writer, TailsAreNumberedOncePerText) {
  const std::string text = writeGraph(*mustRead(R"IR(
graph(%x : Tensor):
  %a : Tensor = prim::DifferentiableGraph_0[ReverseSubgraph=@r](%x)
  %b : Tensor = prim::DifferentiableGraph_1(%a)
  return (%b)
with prim::DifferentiableGraph_0 = graph(%x : Tensor):
  %y : Tensor = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Tensor):
  return (%x)
with @r = graph(%x : Tensor):
  return (%x)
with prim::DifferentiableGraph_1 = graph(%x : Tensor):
  return (%x)
)IR"));
  EXPECT_THAT(text,
              HasSubstr("%a : Tensor = prim::DifferentiableGraph_0[ReverseSubgraph=@ReverseSubgraph_1](%x)"));
  EXPECT_THAT(text, HasSubstr("%b : Tensor = prim::DifferentiableGraph_2(%a)"));
  EXPECT_THAT(text, HasSubstr("%y : Tensor = prim::FusionGroup_3(%x)"));
}

TEST(Writer, NamesThatAreNoWordsAreQuoted) {
  auto graph = mustRead("graph(%x : Tensor):\n  return (%x)\n");
  graph->inputs()[0]->setDebugName("odd name: \"%\"\n#\xc3\xa9");
  expectRoundTrip(*graph);
  EXPECT_EQ(mustRead(writeGraph(*graph))->inputs()[0]->debugName(), graph->inputs()[0]->debugName());
}

// libtorch gives unnamed values the numbers that stand in the text, so that messages and text agree.
TEST(Writer, NumbersOfUnnamedValuesSurvive) {
  const auto graph = mustRead(R"IR(
graph(%x : Tensor, %c : bool):
  %7 : Tensor = aten::relu(%x)
  %5 : Tensor = prim::If(%c)
    block0():
      %9 : Tensor = aten::neg(%7)
      -> (%9)
    block1():
      -> (%7)
  %100 : Tensor = aten::tanh(%5)
  return (%100)
)IR");
  const std::string text = writeGraph(*graph);
  EXPECT_THAT(text, HasSubstr("%" + graph->outputs()[0]->debugName() + " : Tensor = aten::tanh"));
  EXPECT_EQ(graph->outputs()[0]->debugName(), "5");
  expectRoundTrip(*graph);
}

TEST(Writer, EveryConstantThatTorchScriptHas) {
  c10::Dict<std::string, c10::List<double>> dict;
  dict.insert("z", c10::List<double>({1.0, std::nan("")}));
  dict.insert("a", c10::List<double>());
  for (const c10::IValue& value : std::vector<c10::IValue>{
           3,
           std::numeric_limits<int64_t>::min(),
           0.1,
           1e10,
           -0.0,
           5e-324,
           std::numeric_limits<double>::infinity(),
           std::nan(""),
           true,
           c10::complex<double>(-0.0, std::numeric_limits<double>::infinity()),
           "\"quoted\" \\ \n \x01 \xff \0 end"s,
           c10::Device("cuda:3"),
           c10::IValue(),
           std::vector<int64_t>{1, 2},
           std::vector<int64_t>{},
           std::vector<double>{1, 2.5},
           c10::List<bool>({true, false}),
           c10::List<std::string>({"a", "b"}),
           c10::List<at::Tensor>({at::ones({2}), at::zeros({0})}),
           c10::List<at::Tensor>(),
           c10::List<c10::complex<double>>({c10::complex<double>(1, -2)}),
           c10::List<std::optional<int64_t>>({1, std::nullopt}),
           c10::List<c10::List<int64_t>>({c10::List<int64_t>({1}), c10::List<int64_t>()}),
           c10::ivalue::Tuple::create({1, 2.5, std::string("x"), c10::IValue(), at::ones({2})}),
           c10::ivalue::Tuple::create(std::vector<c10::IValue>{}),
           c10::ivalue::Tuple::create({c10::ivalue::Tuple::create({std::vector<int64_t>{1}})}),
           dict,
       }) {
    expectRoundTrip(*constantGraph(value));
  }
}

TEST(Writer, NamedTuples) {
  const auto type =
      c10::TupleType::createNamed(c10::QualifiedName("__torch__.Point"), std::vector<std::string>{"x", "y"},
                                  std::vector<c10::TypePtr>{c10::IntType::get(), c10::FloatType::get()});
  auto graph = std::make_shared<Graph>();
  Node* node = graph->insertNode(graph->create(c10::prim::Constant));
  node->ival_(c10::attr::value, c10::ivalue::Tuple::createNamed({1, 2.5}, type));
  node->output()->setType(type);
  expectRoundTrip(*graph);
}

// A value of another type than the output says is kept as it is: the verifier judges it, not the writer.
TEST(Writer, ConstantsThatDoNotHaveTheirType) {
  auto graph = std::make_shared<Graph>();
  const auto add = [&](const c10::TypePtr& type) {
    Node* node = graph->insertNode(graph->create(c10::prim::Constant));
    node->output()->setType(type);
    return node;
  };
  const c10::TypePtr ints = c10::ListType::ofInts();
  add(ints)->is_(c10::attr::value, {1, 2});
  add(ints)->ival_(c10::attr::value, std::vector<double>{1.5});
  add(ints)->t_(c10::attr::value, at::ones({2}));
  add(c10::FloatType::get())->i_(c10::attr::value, 1);
  add(c10::ComplexType::get())->f_(c10::attr::value, 1);
  add(c10::IntType::get())->f_(c10::attr::value, 1);
  add(c10::StringType::get())->ival_(c10::attr::value, std::string("a"));
  add(c10::TensorType::get())->ty_(c10::attr::value, c10::TupleType::create({c10::IntType::get()}));
  expectRoundTrip(*graph);
}

TEST(Writer, TensorsOfEveryDtype) {
  for (int8_t i = 0; i < static_cast<int8_t>(c10::ScalarType::Undefined); ++i) {
    const auto dtype = static_cast<c10::ScalarType>(i);
    if (c10::isQIntType(dtype) || c10::isBitsType(dtype) || c10::isBarebonesUnsignedType(dtype)) {
      continue;
    }
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{}, {0}, {3, 5}, {20, 20}}) {
      at::Tensor tensor;
      try {
        tensor = at::empty(sizes, at::TensorOptions().dtype(dtype));
      } catch (const c10::Error&) {
        break;  // a dtype that is only a name in this torch
      }
      auto* bytes = static_cast<uint8_t*>(tensor.mutable_data_ptr());
      for (size_t k = 0; k < tensor.nbytes(); ++k) {
        bytes[k] = dtype == at::kBool ? k % 2 : static_cast<uint8_t>(k * 37 + 11);
      }
      Graph graph;
      graph.insertNode(graph.create(c10::prim::Constant))->t_(c10::attr::value, tensor);
      expectRoundTrip(graph);
    }
  }
}

TEST(Writer, TensorsOfEveryLayout) {
  const at::Tensor base = at::arange(24, at::kFloat).view({2, 3, 4});
  at::Tensor special = at::zeros({6});
  special[0] = std::numeric_limits<float>::infinity();
  special[1] = -std::numeric_limits<float>::infinity();
  special[2] = std::nanf("");
  special[3] = -0.0F;
  special[4] = 1e-45F;
  for (const at::Tensor& tensor :
       {base.transpose(0, 2), base.slice(2, 1, 4, 2), base.select(1, 1), base.expand({5, 2, 3, 4}),
        base.to(at::kComplexFloat).conj(), base.as_strided({3, 3}, {1, 1}),
        base.select(0, 1).to(at::kHalf).t(), special, base.detach().clone().requires_grad_(),
        at::empty({2, 2}, at::TensorOptions().device(at::kMeta)), at::Tensor()}) {
    Graph graph;
    graph.insertNode(graph.create(c10::prim::Constant))->t_(c10::attr::value, tensor);
    expectRoundTrip(graph);
  }
}

// An honest refusal, not a wrong constant.
TEST(Writer, LayoutsWithoutAFormAreRefusedByTheReader) {
  for (const at::Tensor& tensor :
       {at::ones({2, 2}).to_sparse(), at::quantize_per_tensor(at::ones({2}), 0.1, 0, at::kQInt8)}) {
    Graph graph;
    graph.insertNode(graph.create(c10::prim::Constant))->t_(c10::attr::value, tensor);
    const auto again = readGraph(writeGraph(graph));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().kind, ErrorKind::Unsupported) << again.error().str();
  }
}

TEST(Writer, AttributeOrderAndOwnNames) {
  auto graph =
      mustRead("graph():\n  my::op[zeta:i=1, alpha=2.5, faultline_inside=1, Zeta:is=[]]()\n  return ()\n");
  EXPECT_THAT(writeGraph(*graph), HasSubstr("my::op[zeta:i=1, alpha=2.5, faultline_inside=1, Zeta:is=[]]()"));
  expectRoundTrip(*graph);
}

TEST(Base64, IsRfc4648) {
  for (const auto& [bytes, text] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foob", "Zm9vYg=="},
                                                        {"\xff\xfe\xfd", "//79"}}) {
    EXPECT_EQ(base64Encode(bytes), text);
    EXPECT_EQ(base64Decode(text), bytes);
  }
  for (const char* text : {"Z", "Zg=", "Zg==Zg==", "Zh==", "Z===", "====", "Zm9 "}) {
    EXPECT_EQ(base64Decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace faultline
