#include <cstring>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "generators/case/spec.h"
#include "generators/choices/choices.h"

namespace faultline {
namespace {

using testing::HasSubstr;

at::Tensor make(const char* text, uint64_t seed = 1) {
  auto spec = readInputSpec(text);
  EXPECT_TRUE(spec) << spec.error().str();
  return makeInput(*spec, seed).value().toTensor();
}

uint64_t hashOf(const at::Tensor& tensor) {
  at::Tensor flat = tensor.detach().contiguous();
  const auto* bytes = static_cast<const unsigned char*>(flat.const_data_ptr());
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < flat.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

// Files carry specs and seeds, not values: these bytes may never change, on no compiler and no machine.
TEST(SpecValues, BytesNeverChange) {
  const std::pair<const char*, uint64_t> known[] = {
      {"float32[64]", 0x41abb3d45e2c33e5},
      {"float64[64]", 0xea5331c8bd6afb44},
      {"float16[64]", 0x51d1a14b645e1909},
      {"bfloat16[64]", 0xd1578962cd74b68a},
      {"complex64[64]", 0x31801e528ea932ee},
      {"complex128[64]:unit", 0xc304f792a122e0f0},
      {"complex32[64]", 0xf61b9184c6dd03a1},
      {"float8_e4m3fn[64]", 0xef9767bb713dd7a6},
      {"float8_e5m2[64]", 0x51916e3d5f3cada8},
      {"int64[64]", 0x79247aeecc40226f},
      {"uint8[64]", 0xae147159dcad6bc2},
      {"bool[64]", 0x37c931e2e159f6a4},
      {"float32[64]:positive", 0xa0496a14fc1f89c3},
      {"float32[64]:unit", 0x61b00a3421317481},
      {"float32[64]:ties", 0x5b816005d89906a5},
      {"float32[64]:edges", 0xd9d78e22352848db},
      {"int32[64]:ties", 0xccc5d25994af5ec5},
      {"int32[64]:edges", 0xd8c447df14db371f},
      {"float32[8,8]:strides=[1,8]:offset=3", 0x41abb3d45e2c33e5},
  };
  for (const auto& [text, hash] : known)
    EXPECT_EQ(hashOf(make(text)), hash) << text << " " << std::hex << hashOf(make(text));
}

TEST(SpecValues, SameSpecAndSeedGiveSameValuesOthersDiffer) {
  EXPECT_TRUE(make("float32[100]", 5).equal(make("float32[100]", 5)));
  EXPECT_FALSE(make("float32[100]", 5).equal(make("float32[100]", 6)));
  EXPECT_TRUE(make("float32[100]:seed=9", 5).equal(make("float32[100]:seed=9", 6)));
  // Another position draws from another stream.
  InputSpec spec = readInputSpec("float32[100]").value();
  EXPECT_FALSE(makeInput(spec, 5, {c10::IValue(1)}).value().toTensor().equal(make("float32[100]", 5)));
}

TEST(SpecValues, LayoutChangesNoValue) {
  at::Tensor plain = make("float32[4,6]:seed=3");
  at::Tensor strided = make("float32[4,6]:seed=3:strides=[1,5]:offset=7");
  EXPECT_TRUE(plain.equal(strided));
  EXPECT_EQ(strided.strides(), (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(strided.storage_offset(), 7);
  EXPECT_FALSE(strided.is_view());
}

// A kernel that ignores strides reads numbers that no element has.
TEST(SpecValues, GapsHoldANumberOfTheirOwn) {
  at::Tensor strided = make("float32[2]:strides=[3]:offset=1:ones");
  at::Tensor storage = at::empty({0}).set_(strided.storage(), 0, {5}, {1});
  EXPECT_TRUE(storage.equal(at::tensor({77.0f, 1.0f, 77.0f, 77.0f, 1.0f})));
}

TEST(SpecValues, ExpandedInputsShareElements) {
  at::Tensor expanded = make("float32[3,4]:strides=[0,1]");
  EXPECT_EQ(expanded.storage().nbytes(), 16u);
  EXPECT_TRUE(expanded[0].equal(expanded[2]));
}

TEST(SpecValues, ZeroSizesAndNoSizes) {
  EXPECT_EQ(make("float32[0,3]").sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(make("float32[0,3]:grad:nonleaf").sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(make("float32[]").dim(), 0);
  EXPECT_EQ(make("float32[0]:offset=4").storage_offset(), 4);
}

TEST(SpecValues, PatternsAreWhatTheySay) {
  at::Tensor normal = make("float64[100000]");
  EXPECT_NEAR(normal.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(normal.std().item<double>(), 1, 0.02);
  at::Tensor positive = make("float64[10000]:positive");
  EXPECT_GE(positive.min().item<double>(), 0.5);
  EXPECT_LT(positive.max().item<double>(), 2);
  EXPECT_GT(positive.max().item<double>(), 1.99);
  for (const char* text :
       {"float64[20000]:unit", "float32[20000]:unit", "float16[20000]:unit", "bfloat16[20000]:unit"}) {
    at::Tensor unit = make(text).to(at::kDouble);
    EXPECT_GT(unit.min().item<double>(), -1) << text;
    EXPECT_LT(unit.max().item<double>(), 1) << text;
    EXPECT_LT(unit.min().item<double>(), -0.97) << text;
    EXPECT_GT(unit.max().item<double>(), 0.97) << text;
  }
  at::Tensor integers = make("int16[10000]");
  EXPECT_EQ(integers.min().item<int64_t>(), -9);
  EXPECT_EQ(integers.max().item<int64_t>(), 9);
  EXPECT_EQ(make("uint8[10000]").max().item<int64_t>(), 9);
  EXPECT_EQ(make("int64[10000]:positive").min().item<int64_t>(), 1);
  EXPECT_NEAR(make("bool[10000]").to(at::kDouble).mean().item<double>(), 0.5, 0.03);
  EXPECT_TRUE(make("complex64[3]:ones").equal(at::ones({3}, at::kComplexFloat)));
  EXPECT_TRUE(make("float32[3]:fill=2.5").equal(at::full({3}, 2.5)));
  EXPECT_TRUE(make("float32[2,2]:values=[1,2,3,4]:strides=[1,2]")
                  .equal(at::tensor({1.f, 2.f, 3.f, 4.f}).view({2, 2})));
  EXPECT_TRUE(make("int64[2]:values=[-9007199254740992,1]")
                  .equal(at::tensor({int64_t{-9007199254740992}, int64_t{1}})));
  at::Tensor complex = make("complex64[2]:values=[1,2,3,4]");
  EXPECT_TRUE(at::view_as_real(complex).equal(at::tensor({1.f, 2.f, 3.f, 4.f}).view({2, 2})));
  EXPECT_TRUE(make("float32[2]:data=AACAPwAAAEA=").equal(at::tensor({1.f, 2.f})));
}

TEST(SpecValues, TiesComeSeveralTimesEach) {
  for (const char* text : {"float32[12]:ties", "int64[12]:ties", "uint8[12]:ties"}) {
    auto [values, inverse, counts] = at::_unique2(make(text), true, false, true);
    EXPECT_EQ(values.numel(), 4) << text;
    EXPECT_EQ(counts.min().item<int64_t>(), 3) << text;
  }
}

TEST(SpecValues, EdgesHaveZerosOfBothSigns) {
  at::Tensor edges = make("float32[1000]:edges");
  at::Tensor zeros = edges.eq(0);
  EXPECT_GT(zeros.logical_and(edges.signbit()).sum().item<int64_t>(), 0);
  EXPECT_GT(zeros.logical_and(edges.signbit().logical_not()).sum().item<int64_t>(), 0);
  EXPECT_GT(edges.eq(6).sum().item<int64_t>(), 0);
}

TEST(SpecValues, LeavesAndOthers) {
  at::Tensor plain = make("float32[2]");
  EXPECT_FALSE(plain.requires_grad());
  at::Tensor leaf = make("float32[2]:grad");
  EXPECT_TRUE(leaf.requires_grad() && leaf.is_leaf());
  for (const char* text :
       {"float32[2,3]:grad:nonleaf:seed=1", "float32[2,3]:grad:nonleaf:strides=[1,2]:seed=1",
        "float32[2,3]:grad:nonleaf:strides=[3,1]:offset=2:seed=1",
        "float32[2,3]:grad:nonleaf:strides=[0,0]:seed=1"}) {
    // The caller's mode does not matter.
    c10::AutoGradMode no_grad(false);
    at::Tensor other = make(text);
    EXPECT_TRUE(other.requires_grad() && !other.is_leaf()) << text;
    InputSpec spec = readInputSpec(text).value();
    EXPECT_EQ(other.storage_offset(), spec.offset) << text;
    EXPECT_EQ(other.strides(), spec.strides.value_or(std::vector<int64_t>{3, 1})) << text;
    spec.leaf = true;
    at::Tensor same = makeInput(spec, 1).value().toTensor();
    EXPECT_TRUE(other.equal(same)) << text;
    EXPECT_EQ(other._version(), same._version()) << text;
  }
}

TEST(SpecValues, GradientsOfANonLeafCanBeHad) {
  for (const char* text : {"float32[2,3]:grad:nonleaf", "float32[2,3]:grad:nonleaf:strides=[3,1]:offset=2"}) {
    at::Tensor input = make(text);
    at::Tensor loss = (input * input).sum();
    auto gradients = torch::autograd::grad({loss}, {input}, {}, /*retain_graph=*/true);
    EXPECT_TRUE(gradients.at(0).equal(2 * input)) << text;
    input.retain_grad();
    loss.backward();
    EXPECT_TRUE(input.grad().equal(2 * input)) << text;
    // Written in place it is still differentiable, unlike a leaf.
    at::Tensor written = make(text);
    EXPECT_NO_THROW(written.add_(1)) << text;
  }
}

TEST(SpecValues, AnotherDtypeKeepsGivenValues) {
  for (const char* text : {"float32[2]:data=AACAPwAAAEA=", "bfloat16[2]:data=gD8AQA==",
                           "float32[2]:values=[1, 2]", "float16[2]:ones:grad"}) {
    InputSpec spec = readInputSpec(text).value();
    at::Tensor before = makeInput(spec, 1).value().toTensor();
    changeDtype(spec, at::kDouble);
    at::Tensor after = makeInput(spec, 1).value().toTensor();
    EXPECT_EQ(after.scalar_type(), at::kDouble) << text;
    EXPECT_TRUE(after.equal(before.to(at::kDouble))) << text;
    EXPECT_EQ(after.requires_grad(), before.requires_grad()) << text;
  }
  InputSpec complex = readInputSpec("complex64[1]:data=AACAPwAAAEA=").value();
  changeDtype(complex, at::kComplexDouble);
  EXPECT_EQ(makeInput(complex, 1).value().toTensor().item<c10::complex<double>>(),
            (c10::complex<double>(1, 2)));
}

TEST(SpecValues, ListsTuplesAndNone) {
  auto value = [](const char* text, const c10::TypePtr& type = nullptr) {
    return makeInput(readInputSpec(text).value(), 1, {c10::IValue(at::ones({2}))}, type).value();
  };
  c10::IValue tensors = value("[float32[2], float32[2]:grad, @0]");
  ASSERT_TRUE(tensors.isTensorList());
  EXPECT_FALSE(tensors.toTensorList().get(0).equal(tensors.toTensorList().get(1)));
  EXPECT_TRUE(value("[1, 2]").isIntList());
  EXPECT_TRUE(value("[0.5]").isDoubleList());
  EXPECT_TRUE(value("[true]").isBoolList());
  EXPECT_EQ(value("[\"a\"]").toList().elementType()->str(), "str");
  EXPECT_EQ(value("[float32[2], none]").toList().elementType()->str(), "Tensor?");
  EXPECT_EQ(value("(1, float32[2], [])").toTupleRef().elements().size(), 3u);
  EXPECT_TRUE(value("[]").isTensorList());
  EXPECT_TRUE(value("[]", c10::ListType::ofInts()).isIntList());
  EXPECT_TRUE(value("([], 1)", c10::TupleType::create({c10::ListType::ofFloats(), c10::IntType::get()}))
                  .toTupleRef()
                  .elements()[0]
                  .isDoubleList());
  EXPECT_TRUE(value("[]", c10::OptionalType::create(c10::ListType::ofInts())).isIntList());
  EXPECT_TRUE(value("none").isNone());
  EXPECT_EQ(value("\"a\"").toStringRef(), "a");
}

TEST(SpecValues, SameAsIsTheSameObject) {
  c10::IValue first = makeInput(readInputSpec("float32[2]:grad").value(), 1).value();
  c10::IValue same = makeInput(readInputSpec("@0").value(), 1, {first}).value();
  EXPECT_TRUE(same.toTensor().is_same(first.toTensor()));
  EXPECT_THAT(makeInput(readInputSpec("@1").value(), 1, {first}).error().message,
              HasSubstr("@1 is not an earlier input"));
}

TEST(SpecValues, CudaWithoutCudaIsUnsupported) {
  if (at::hasCUDA()) {
    EXPECT_TRUE(make("float32[2]:cuda").is_cuda());
    return;
  }
  auto made = makeInput(readInputSpec("float32[2]:cuda").value(), 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Unsupported);
}

TEST(SpecValues, ASpecMadeInCodeIsCheckedToo) {
  InputSpec spec;
  spec.sizes = {-1};
  EXPECT_THAT(makeInput(spec, 1).error().message, HasSubstr("sizes are not negative"));
  spec.sizes = {2};
  spec.dtype = at::kQInt8;
  EXPECT_THAT(makeInput(spec, 1).error().message, HasSubstr("inputs cannot have dtype"));
}

TEST(SpecTypes, OfInputs) {
  auto type = [](const char* text, bool complete = false) {
    std::ostringstream out;
    out << *inputType(readInputSpec(text).value(), complete);
    return out.str();
  };
  EXPECT_EQ(type("float32[2]"), "Tensor");
  EXPECT_EQ(type("float32[2,3]:grad", true), "Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)");
  EXPECT_EQ(type("int64[2,3]:strides=[1,2]", true),
            "Long(2, 3, strides=[1, 2], requires_grad=0, device=cpu)");
  EXPECT_EQ(type("[float32[2], none]"), "Tensor?[]");
  EXPECT_EQ(type("(1, 0.5, true, \"\")"), "(int, float, bool, str)");
  EXPECT_EQ(type("[[1]]"), "int[][]");
  // The complete type is that of the tensor made.
  for (const char* text : {"float32[2,3]:grad", "float64[2,3]:strides=[1,2]", "float32[4,2]:strides=[0,1]",
                           "float32[]", "float32[0,2]"}) {
    InputSpec spec = readInputSpec(text).value();
    EXPECT_EQ(*inputType(spec, true), *c10::TensorType::create(makeInput(spec, 1).value().toTensor()))
        << text;
  }
}

TEST(SpecTypes, WhatFits) {
  using c10::TensorType;
  auto why = [](const char* text, const c10::TypePtr& type) {
    std::vector<InputSpec> earlier = {readInputSpec("float32[2]").value(), readInputSpec("3").value()};
    return whyNotFits(readInputSpec(text).value(), *type, earlier);
  };
  c10::TypePtr tensor = TensorType::get();
  c10::TypePtr complete = inputType(readInputSpec("float32[2,3]:grad").value(), true);
  EXPECT_EQ(why("float32[2]", tensor), "");
  EXPECT_EQ(why("float32[2,3]:grad", complete), "");
  EXPECT_EQ(why("float32[2,3]", complete), "requires_grad is declared 1, the input has 0");
  EXPECT_EQ(why("float64[2,3]:grad", complete), "the dtype is declared Float, the input has Double");
  EXPECT_EQ(why("float32[3]:grad", complete), "the number of dimensions is declared 2, the input has 1");
  EXPECT_EQ(why("float32[2,4]:grad", complete), "size 1 is declared 3, the input has 4");
  EXPECT_EQ(why("float32[2,3]:grad:strides=[1,2]", complete), "stride 0 is declared 3, the input has 1");
  EXPECT_EQ(why("@0", tensor), "");
  EXPECT_EQ(why("@1", tensor), "Tensor is declared, the input is int");
  EXPECT_EQ(why("@2", tensor), "@2 is not an earlier input");
  EXPECT_EQ(why("3", tensor), "Tensor is declared, the input is int");
  EXPECT_EQ(why("3", c10::NumberType::get()), "");
  EXPECT_EQ(why("0.5", c10::NumberType::get()), "");
  EXPECT_EQ(why("3", c10::FloatType::get()), "float is declared, the input is int");
  EXPECT_EQ(why("none", c10::OptionalType::create(tensor)), "");
  EXPECT_EQ(why("float32[2]", c10::OptionalType::create(tensor)), "");
  EXPECT_EQ(why("none", tensor), "Tensor is declared, the input is NoneType");
  EXPECT_EQ(why("[]", c10::ListType::ofInts()), "");
  EXPECT_EQ(why("[1, 0.5]", c10::ListType::ofInts()), "element 1: int is declared, the input is float");
  EXPECT_EQ(why("(1, float32[2])", c10::TupleType::create({c10::IntType::get(), tensor})), "");
  EXPECT_EQ(why("(1,)", c10::TupleType::create({c10::IntType::get(), tensor})),
            "a tuple of 2 is declared, the input has 1");
  EXPECT_EQ(why("[1]", c10::TupleType::create({c10::IntType::get()})),
            "Tuple[int] is declared, the input is List[int]");
}

}  // namespace
}  // namespace faultline
