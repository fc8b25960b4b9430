#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;

c10::TypePtr mustReadType(std::string_view text) {
  auto type = readType(text);
  if (!type) {
    ADD_FAILURE() << text << ": " << type.error().str();
    return c10::AnyType::get();
  }
  return *type;
}

std::string typeError(std::string_view text) {
  const auto type = readType(text);
  return type ? "no error" : type.error().str();
}

const c10::TensorType& tensorType(const c10::TypePtr& type) { return type->expectRef<c10::TensorType>(); }

void expectSameText(const std::string& text) { EXPECT_EQ(writeType(*mustReadType(text)), text); }

void expectRoundTrip(const c10::TypePtr& type) {
  const std::string text = writeType(*type);
  const c10::TypePtr again = mustReadType(text);
  EXPECT_EQ(*again, *type) << text;
  EXPECT_EQ(writeType(*again), text);
}

TEST(Types, TextThatIsItsOwnWriting) {
  for (const char* text : {
           "Tensor",
           "Tensor(requires_grad=0)",
           "Tensor(device=cpu)",
           "Tensor(requires_grad=1, device=cuda:1)",
           "Tensor[Undefined]",
           "Tensor[MaybeUndefined]",
           "Tensor(2, 3)",
           "Tensor(2, *, requires_grad=1)",
           "Tensor(rank=0)",
           "Tensor(rank=0, requires_grad=0)",
           "Float()",
           "Float(requires_grad=0, device=cpu)",
           "FloatTensor",
           "FloatTensor(requires_grad=0, device=meta)",
           "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)",
           "Float(2, 3, strides=[1, 2], requires_grad=1, device=cpu)",
           "Float(*, 3, strides=[3, 1], requires_grad=0, device=cpu)",
           "Float(*, *, requires_grad=0, device=cpu)",
           "Float(2, 3, strides=[*, 1])",
           "Float(2, 3, strides=*)",
           "Float(2, 3, strides=[3, 1])[Undefined]",
           "Float(2, 3, 1, strides=[0, 0, 5])",
           "Float(2, 3, stride_properties=[1:1:*, *])",
           "Float(2, 3, stride_properties=[1:1:1, 0:*:1])",
           "Float(2, 3, stride_properties=[*:*:0, 0:3:0])",
           "Float(2, 3, stride_properties=[0:3:1])",
           "FloatTensor(stride_properties=[0:1:1])",
           "Tensor(stride_properties=[*, 1:2:*], device=cpu)",
           "Float(0, 3, strides=[3, 1])",
           "BFloat16(1)",
           "ComplexHalf(1)",
           "UInt64(1)",
           "Float8_e4m3fn(1)",
           "QInt8(1)",
           "Tensor?",
           "Tensor[]",
           "Tensor?[]",
           "Tensor[]?",
           "int[][]?",
           "Tensor[Undefined][]",
           "(Tensor, int)",
           "()",
           "(int)",
           "(int, (float, str))[]",
           "Dict(str, Tensor)",
           "Dict(int, Dict(str, int[]))",
           "Future[Tensor]",
           "Await[int]",
           "RRef[int]",
           "Union[int, str]",
           "NamedTuple[__torch__.Point](x : int, y : Tensor(requires_grad=1))",
           "NamedTuple(x : int, y : Tensor)",
           "int",
           "float",
           "bool",
           "complex",
           "str",
           "Any",
           "Scalar",
           "NoneType",
           "Device",
           "Generator",
           "Stream",
           "Layout",
           "ScalarType",
           "MemoryFormat",
           "QScheme",
           "Storage",
           "Capsule",
           "Function",
           "list",
           "tuple",
           "SymInt",
           "AnyEnumType",
       }) {
    expectSameText(text);
    expectRoundTrip(mustReadType(text));
  }
}

TEST(Types, EveryDtypeHasAName) {
  for (int8_t i = 0; i < static_cast<int8_t>(c10::ScalarType::Undefined); ++i) {
    const auto dtype = static_cast<c10::ScalarType>(i);
    expectRoundTrip(c10::TensorType::create(dtype, std::nullopt, size_t{2}, std::nullopt));
  }
}

TEST(Types, MeanWhatLibtorchMeans) {
  const auto complete = mustReadType("Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)");
  EXPECT_EQ(*complete, *c10::TensorType::create(at::rand({2, 3})));
  EXPECT_EQ(*mustReadType("Tensor"), *c10::TensorType::get());
  EXPECT_EQ(tensorType(mustReadType("Tensor[Undefined]")).undefined(), true);
  EXPECT_EQ(tensorType(mustReadType("Tensor[MaybeUndefined]")).undefined(), std::nullopt);
  EXPECT_EQ(tensorType(mustReadType("Tensor(2, 3)")).scalarType(), std::nullopt);
  EXPECT_EQ(tensorType(mustReadType("Tensor()")).dim(), 0U);
  EXPECT_EQ(tensorType(mustReadType("Tensor(requires_grad=0)")).dim(), std::nullopt);
  EXPECT_EQ(tensorType(mustReadType("Float(requires_grad=0)")).dim(), 0U);
  EXPECT_EQ(tensorType(mustReadType("Float(2, 3, strides=[*, 1])")).strides()[1], 1);
  EXPECT_EQ(tensorType(mustReadType("Float(2, 3, strides=[*, 1])")).strides()[0], std::nullopt);
  EXPECT_EQ(*mustReadType("List[Optional[int]]"), *mustReadType("int?[]"));
  EXPECT_EQ(*mustReadType("Tuple[int, Dict[str, int]]"), *mustReadType("(int, Dict(str, int))"));
  EXPECT_EQ(*mustReadType("Union(int, str)"), *mustReadType("Union[int, str]"));
}

TEST(Types, OfRealTensors) {
  for (const at::Tensor& tensor :
       {at::rand({}), at::rand({0}), at::rand({2, 3}).t(), at::rand({2, 1, 3}).expand({2, 4, 3}),
        at::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast), at::rand({4, 4}).slice(1, 0, 4, 2),
        at::rand({1, 1, 1}), at::rand({3, 0, 2}), at::arange(9).as_strided({3, 3}, {1, 1}),
        at::rand({5}).requires_grad_()}) {
    expectRoundTrip(c10::TensorType::create(tensor));
  }
}

// What profiling makes of two runs.
TEST(Types, OfMergedRuns) {
  const auto merged = [](const at::Tensor& a, const at::Tensor& b) {
    return c10::TensorType::create(a)->merge(*c10::TensorType::create(b));
  };
  expectRoundTrip(merged(at::rand({2, 3}), at::rand({4, 3})));
  expectRoundTrip(merged(at::rand({2, 3}), at::rand({2, 5})));
  expectRoundTrip(merged(at::rand({2, 3}), at::rand({3, 2}).t()));
  expectRoundTrip(merged(at::rand({2, 3}), at::rand({2})));
  expectRoundTrip(merged(at::rand({2, 3}), at::rand({2, 3}, at::kDouble)));
  expectRoundTrip(c10::TensorType::create(at::rand({2, 3}))->merge(*c10::TensorType::get()->withUndefined()));
  EXPECT_EQ(writeType(*merged(at::rand({2, 3}), at::rand({4, 3}))),
            "Float(*, 3, strides=[3, 1], requires_grad=0, device=cpu)");
}

TEST(Types, Errors) {
  EXPECT_EQ(typeError(""), "1:1: expected a type, found the end of the text");
  EXPECT_EQ(typeError("Flaot(2)"), "1:1: unknown type 'Flaot' (did you mean 'Float'?)");
  EXPECT_EQ(typeError("Float"),
            "1:6: expected '(' behind a dtype: a Float tensor of unknown rank is 'FloatTensor', found "
            "the end of the text");
  EXPECT_EQ(typeError("FloatTensor(2)"), "1:1: a tensor with sizes is 'Float(…)'");
  EXPECT_EQ(typeError("Float(2, strides=[1, 2])"), "1:1: a tensor with 2 strides needs as many sizes");
  EXPECT_EQ(typeError("Float(-2)"), "1:7: a size is not negative");
  EXPECT_EQ(typeError("Float(99999999999999999999)"), "1:7: 99999999999999999999 does not fit into 64 bits");
  EXPECT_EQ(typeError("Float(2.5)"), "1:7: expected a size, found '2.5'");
  EXPECT_EQ(typeError("Float(2, 3"),
            "1:11: expected ')' or ',' in the fields of a tensor type, found the end of the text");
  EXPECT_THAT(typeError("Float(2, stride=[1])"), HasSubstr("1:10: unknown field 'stride' of a tensor type"));
  EXPECT_THAT(typeError("Float(2, requires_grad=2)"), HasSubstr("1:24: expected 0 or 1"));
  EXPECT_THAT(typeError("Float(2, requires_grad=1, requires_grad=1)"), HasSubstr("stands twice"));
  EXPECT_THAT(typeError("Float(requires_grad=1, 2)"), HasSubstr("1:24: expected a field"));
  EXPECT_THAT(typeError("Float(2, device=gpu)"), HasSubstr("1:17: unknown device 'gpu'"));
  EXPECT_THAT(typeError("Float(2, stride_properties=[1])"), HasSubstr("1:30: expected ':'"));
  EXPECT_THAT(typeError("Float(2, stride_properties=[1:1:1])"),
              HasSubstr("1:10: dimension 1 in properties of 1 strides"));
  EXPECT_THAT(typeError("Dict(str)"), HasSubstr("'Dict' takes 2 types, found 1"));
  EXPECT_THAT(typeError("Dict(Tensor[], int)"), HasSubstr("no such type"));
  EXPECT_THAT(typeError("int int"), HasSubstr("1:5: expected the end of the type, found 'int'"));
  EXPECT_THAT(typeError("int["), HasSubstr("1:4: expected the end of the type"));
  EXPECT_THAT(typeError("__torch__.Net"), HasSubstr("needs the module that declares it"));
}

}  // namespace
}  // namespace faultline
