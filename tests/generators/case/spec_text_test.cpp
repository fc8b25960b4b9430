#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generators/case/spec.h"
#include "generators/choices/choices.h"

namespace faultline {
namespace {

using testing::HasSubstr;
using Kind = InputSpec::Kind;

InputSpec tensor(at::ScalarType dtype, std::vector<int64_t> sizes) {
  InputSpec spec;
  spec.dtype = dtype;
  spec.sizes = std::move(sizes);
  return spec;
}

TEST(SpecText, BothSeparatorsMeanTheSame) {
  InputSpec spec = tensor(at::kFloat, {4, 8});
  spec.requires_grad = true;
  spec.seed = 1;
  for (const char* text :
       {"float32[4,8]:grad:seed=1", "float32[4,8] grad seed=1", "float32[ 4, 8 ] : grad : seed=1",
        "torch.float32[4,8]:seed=1:grad", "float[4,8,] grad:seed=1 "}) {
    EXPECT_EQ(readInputSpec(text).value(), spec) << text;
  }
  EXPECT_EQ(writeInputSpec(spec), "float32[4,8]:grad:seed=1");
}

TEST(SpecText, ScalarsWithAndWithoutTheirType) {
  for (const char* text : {"3", "+3", "int=3"}) {
    EXPECT_EQ(readInputSpec(text).value().kind, Kind::Int) << text;
    EXPECT_EQ(readInputSpec(text).value().int_value, 3) << text;
  }
  for (const char* text : {"3.0", "3e0", "float=3", "double=3.0"}) {
    EXPECT_EQ(readInputSpec(text).value().kind, Kind::Double) << text;
    EXPECT_EQ(readInputSpec(text).value().double_value, 3) << text;
  }
  for (const char* text : {"true", "True", "bool=true"}) {
    EXPECT_EQ(readInputSpec(text).value().kind, Kind::Bool) << text;
    EXPECT_TRUE(readInputSpec(text).value().bool_value) << text;
  }
  EXPECT_EQ(readInputSpec("none").value().kind, Kind::None);
  EXPECT_EQ(readInputSpec("None").value().kind, Kind::None);
  EXPECT_EQ(readInputSpec("\"a\\\"b\"").value().string_value, "a\"b");
  EXPECT_EQ(readInputSpec("str=\"\"").value().kind, Kind::String);
  EXPECT_EQ(readInputSpec("-9223372036854775808").value().int_value, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(readInputSpec("-inf").value().double_value, -std::numeric_limits<double>::infinity());
}

// What is written is read back to the same spec, and written the same again.
TEST(SpecText, CanonicalTextSurvives) {
  for (const char* text : {"float32[]",
                           "float32[0,3]",
                           "float64[2,3]:grad:nonleaf:strides=[1,2]:offset=5:edges:seed=18446744073709551615",
                           "bfloat16[4]:strides=[0]",
                           "float16[2]:cuda",
                           "complex64[2]:grad:values=[1, -0.5, 0, 2]",
                           "complex32[1]:values=[1, 2]",
                           "int64[2]:values=[-3, 4]",
                           "uint8[3]:fill=255",
                           "bool[2]:values=[0, 1]",
                           "float32[3]:values=[inf, -inf, -0]",
                           "float32[2]:data=AACAPwAAAEA=",
                           "float8_e5m2[2]:ones",
                           "uint64[1]:zeros",
                           "float32[6]:positive",
                           "float32[6]:unit",
                           "float32[6]:ties",
                           "3",
                           "-3",
                           "0.5",
                           "1.0",
                           "-0.0",
                           "1e+300",
                           "inf",
                           "true",
                           "false",
                           "\"x\\n\"",
                           "none",
                           "@0",
                           "[]",
                           "()",
                           "[float32[2], float32[2]:grad]",
                           "(float32[2], [1, 2], (none, @3), \",)]\")"}) {
    auto spec = readInputSpec(text);
    ASSERT_TRUE(spec) << text << ": " << spec.error().str();
    EXPECT_EQ(writeInputSpec(*spec), text);
    EXPECT_EQ(readInputSpec(writeInputSpec(*spec)).value(), *spec);
  }
}

TEST(SpecText, EveryDtypeHasANameThatReadsBack) {
  int dtypes = 0;
#define FAULTLINE_DTYPE(scalar, cpp, torch_name, other)             \
  EXPECT_EQ(writeDtype(at::ScalarType::scalar), torch_name);        \
  EXPECT_EQ(readDtype(torch_name).value(), at::ScalarType::scalar); \
  if (*other != '\0') {                                             \
    EXPECT_EQ(readDtype(other).value(), at::ScalarType::scalar);    \
  }                                                                 \
  ++dtypes;
#include "generators/case/dtypes.def"
#undef FAULTLINE_DTYPE
  EXPECT_EQ(dtypes, 18);
  EXPECT_EQ(readDtype("torch.float64").value(), at::kDouble);
  EXPECT_THAT(readDtype("").error().message, HasSubstr("expected a dtype such as float32, got ''"));
  EXPECT_FALSE(readDtype("qint8"));
}

struct BadSpec {
  const char* text;
  size_t column;
  const char* message;
};

class SpecErrors : public testing::TestWithParam<BadSpec> {};

TEST_P(SpecErrors, SayWhereAndWhatWasExpected) {
  auto spec = readInputSpec(GetParam().text);
  ASSERT_FALSE(spec);
  ASSERT_TRUE(spec.error().where);
  EXPECT_EQ(spec.error().where->column, GetParam().column) << spec.error().str();
  EXPECT_THAT(spec.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, SpecErrors,
    testing::Values(BadSpec{"", 1, "expected an input such as float32[4,8]:grad"},
                    BadSpec{"flaot32[2]", 1, "expected a dtype such as float32, got 'flaot32'"},
                    BadSpec{"float32", 1, "expected an input such as"},
                    BadSpec{"torch.int=3", 1, "expected an input such as"},
                    BadSpec{"float32[2", 10, "expected ',' or ']', got the end"},
                    BadSpec{"float32[a]", 9, "expected a size, got 'a]'"},
                    BadSpec{"float32[2]:gard", 12, "expected grad, nonleaf, strides"},
                    BadSpec{"float32[2]:", 12, "expected grad, nonleaf"},
                    BadSpec{"float32[2] x", 12, "expected grad, nonleaf"},
                    BadSpec{"float32[2]:grad:grad", 17, "expected grad to be given once"},
                    BadSpec{"float32[2]:zeros:fill=1", 18, "the pattern of values to be given once"},
                    BadSpec{"float32[2]:cpu:cuda", 16, "device to be given once"},
                    BadSpec{"float32[2]:seed=-1", 17, "expected a seed, got '-1'"},
                    BadSpec{"int64[2]:grad", 1, "only floating and complex tensors have gradients"},
                    BadSpec{"float32[2]:nonleaf", 1, "nonleaf needs grad"},
                    BadSpec{"float32[-2]", 1, "sizes are not negative"},
                    BadSpec{"float32[2,3]:strides=[1]", 1, "expected 2 strides"},
                    BadSpec{"float32[2]:strides=[-1]", 1, "strides are not negative"},
                    BadSpec{"float32[2]:offset=-1", 1, "offsets are not negative"},
                    BadSpec{"float32[99999999999,99999999999]", 1, "at most 1024 MiB"},
                    BadSpec{"float32[0,9223372036854775807,9223372036854775807]", 1, "at most 1024 MiB"},
                    BadSpec{"float32[2]:strides=[9223372036854775807]", 1, "at most 1024 MiB"},
                    BadSpec{"float32[2]:offset=9223372036854775807", 1, "at most 1024 MiB"},
                    BadSpec{"float32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                            "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                            "1,1,1,1,1,1,1,1]",
                            1, "at most 64 dimensions"},
                    BadSpec{"float32[2]:values=[1]", 1, "expected 2 values, got 1"},
                    BadSpec{"complex64[1]:values=[1]", 1, "expected 2 values (real"},
                    BadSpec{"uint8[1]:values=[256]", 1, "uint8 cannot hold the value 256"},
                    BadSpec{"uint8[1]:fill=-1", 1, "cannot hold the value -1"},
                    BadSpec{"int32[1]:fill=0.5", 1, "cannot hold the value 0.5"},
                    BadSpec{"int64[1]:fill=nan", 1, "cannot hold the value nan"},
                    BadSpec{"int64[1]:fill=9223372036854775808", 1, "int64 cannot hold"},
                    BadSpec{"bool[1]:fill=2", 1, "bool cannot hold"},
                    BadSpec{"int64[1]:values=[9007199254740993]", 18, "a value that a double holds exactly"},
                    BadSpec{"float32[2]:strides=[0]:values=[1, 2]", 1,
                            "elements that share memory are given different values"},
                    BadSpec{"float32[1]:data=AAA", 17, "bytes in base64"},
                    BadSpec{"float32[1]:data=AAAA", 1, "expected 4 bytes of data, got 3"},
                    BadSpec{"bool[1]:data=Ag==", 1, "bytes of bool data are 0 or 1"},
                    BadSpec{"bool=1", 1, "bool=true or bool=false"},
                    BadSpec{"\"a", 3, "'\"' that ends the string"},
                    BadSpec{"@x", 2, "the number of an earlier input"},
                    BadSpec{"[1 2]", 4, "expected ',' or ']'"}, BadSpec{"(1, 2]", 6, "expected ',' or ')'"},
                    BadSpec{"1 2", 3, "expected the end of the input's description"},
                    BadSpec{"99999999999999999999", 1, "an integer of 64 bits"},
                    BadSpec{"float32[2]:seed=18446744073709551616", 17, "a seed below 2^64"}));

TEST(SpecText, NestingHasALimit) {
  auto spec = readInputSpec(std::string(100000, '['));
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, HasSubstr("at most 32 nested lists"));
}

TEST(SpecText, NoBytesBreakTheReader) {
  const std::vector<std::string> texts = {"float64[2,3]:grad:nonleaf:strides=[1,2]:offset=5:edges:seed=18",
                                          "(float32[2]:values=[1, 2], [1, 2], (none, @3), \"a\\x00\", 1e5)",
                                          "float32[2]:data=AACAPwAAAEA= cuda"};
  Random random(2);
  int accepted = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string text = texts[random.below(texts.size())];
    for (uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0:
          text[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          text.erase(at, random.below(5));
          break;
        default:
          text.insert(at, text.substr(random.below(text.size()), random.below(12)));
      }
      if (text.empty()) text = "x";
    }
    if (auto spec = readInputSpec(text)) {
      ++accepted;
      std::string written = writeInputSpec(*spec);
      ASSERT_EQ(writeInputSpec(readInputSpec(written).value()), written) << text;
    } else {
      ASSERT_TRUE(spec.error().where) << text;
    }
  }
  EXPECT_GT(accepted, 300);
}

}  // namespace
}  // namespace faultline
