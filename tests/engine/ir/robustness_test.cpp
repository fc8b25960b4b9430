// No bytes whatever crash or hang the reader, and what it accepts holds the promises of writer and
// comparison.
#include <gmock/gmock.h>

#include "tests/engine/ir/ir_text.h"

namespace faultline {
namespace {

const char* const kSample = R"IR(# a bit of everything
graph(%x.1 : Float(2, *, strides=[3, 1], requires_grad=1, device=cpu), %c : bool, %"odd name" : (int, Tensor[])?):
  %2 : int = prim::Constant[value=-9223372036854775808]() # f.py:1:2
  %f : float = prim::Constant[value=1.5e-3]()
  %l : (int[], str) = prim::Constant[value=([1, 2], "a\n\377\"")]()
  %t : Tensor = prim::Constant[value=tensor(Float(2, 2, strides=[1, 2]), storage=[1., -0., nan, inf])]()
  %b : Tensor = prim::Constant[value=tensor(Half(2), base64="AQIDBA==")]()
  %u : Long(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value= 1 -2 [ CPULongType{2} ]]()
  %d : Dict(str, complex) = prim::Constant[value={"k": 1.-2.j}]()
  %p : Tensor = prim::profile[profiled_type=Float(2, stride_properties=[0:1:*]), seen_none=0](%x.1), scope: a/b
   = prim::profile()
  %r : Tensor, %n : int = prim::Loop(%2, %c, %p, %2)
    block0(%i : int, %a : Tensor, %k : int):
      %y : Tensor = prim::If(%c)
        block0():
          %z : Tensor = aten::add(%a, %t, %k)
          -> (%z)
        block1():
          -> (%a)
      -> (%c, %y, %i)
  %g : Tensor = prim::DifferentiableGraph_0[ReverseSubgraph=@r, f_real_outputs=1, df_input_vjps=[0], df_input_captured_inputs=[], df_input_captured_outputs=[], df_output_vjps=[0], own:fs=[]](%r)
  return (%g)
with prim::DifferentiableGraph_0 = graph(%x : Tensor[MaybeUndefined]):
  %o : Tensor, %q : bool = prim::TypeCheck[types=[Tensor(requires_grad=0)]](%x)
  return (%o)
with @r = graph(%x : Future[Union[int, str]]):
  return (%x)
)IR";

// A fixed sequence of numbers, the same on every platform.
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : state_(seed) {}
  size_t below(size_t limit) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<size_t>(state_ >> 33) % limit;
  }

 private:
  uint64_t state_;
};

// True if the text was accepted.
bool check(const std::string& text) {
  const auto graph = readGraph(text);
  if (!graph) {
    EXPECT_FALSE(graph.error().message.empty());
    EXPECT_TRUE(graph.error().where.has_value()) << graph.error().str() << "\n" << text;
    return false;
  }
  if (verifyGraph(**graph)) {
    const auto inlined = (*graph)->copy();
    inlineSubgraphs(*inlined);
    const auto verified = verifyGraph(*inlined);
    EXPECT_TRUE(verified) << verified.error().str() << "\n" << text;
  }
  const std::string written = writeGraph(**graph);
  const auto again = readGraph(written);
  EXPECT_TRUE(again) << again.error().str() << "\n" << text << "\n" << written;
  if (again) {
    EXPECT_EQ(describeGraphDifference(**graph, **again), "") << text << "\n" << written;
    EXPECT_EQ(writeGraph(**again), written);
  }
  return true;
}

TEST(Robustness, TheSampleIsReadAndValid) {
  const auto verified = verifyGraph(*testing::mustRead(kSample));
  EXPECT_TRUE(verified) << verified.error().str();
}

TEST(Robustness, CutAtEveryByte) {
  const std::string sample = kSample;
  for (size_t size = 0; size <= sample.size(); ++size) {
    check(sample.substr(0, size));
  }
}

TEST(Robustness, EditedBytes) {
  const std::string sample = kSample;
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Sequence numbers(seed);
    std::string text = sample;
    for (size_t edits = 1 + numbers.below(3); edits > 0; --edits) {
      const size_t at = numbers.below(text.size());
      switch (numbers.below(4)) {
        case 0:
          text[at] = static_cast<char>(numbers.below(256));
          break;
        case 1:
          text.erase(at, 1 + numbers.below(4));
          break;
        case 2:
          text.insert(at, 1, "0123456789%()[]{}:,=-.*@#\"\\ajx"[numbers.below(30)]);
          break;
        default: {
          // A piece of the text at another place: closer to what a person gets wrong.
          const size_t from = numbers.below(text.size());
          text.insert(at, text.substr(from, 1 + numbers.below(12)));
        }
      }
    }
    accepted += check(text) ? 1 : 0;
  }
  EXPECT_GT(accepted, 100U) << "edits that are too hard test only the first error";
}

TEST(Robustness, SwappedLines) {
  std::vector<std::string> lines;
  std::istringstream stream(kSample);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line + "\n");
  }
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Sequence numbers(seed);
    auto shuffled = lines;
    std::swap(shuffled[numbers.below(lines.size())], shuffled[numbers.below(lines.size())]);
    std::string text;
    for (const std::string& line : shuffled) {
      text += line;
    }
    check(text);
  }
}

TEST(Robustness, BytesThatAreNoText) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Sequence numbers(seed);
    std::string text = "graph(";
    for (size_t size = numbers.below(200); size > 0; --size) {
      text += static_cast<char>(numbers.below(256));
    }
    check(text);
    check(text.substr(6));
  }
  check(std::string(1000000, '('));
  check(std::string(1000000, '#'));
  check(std::string(1000000, '\0'));
  check("graph(%x : Float(" + std::string(100000, '9') + "))");
}

}  // namespace
}  // namespace faultline
