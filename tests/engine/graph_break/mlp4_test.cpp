// The example of the request: corpus/examples/mlp4.py broken after `linear` and `relu_1`.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/resolver.h>

#include "faultline/graph_break.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

using testing::ElementsAre;

std::shared_ptr<Graph> mlp4() {
  std::ifstream file(FAULTLINE_CORPUS "/examples/mlp4.py");
  std::stringstream source;
  source << file.rdbuf();
  torch::jit::CompilationUnit unit;
  unit.define(c10::nullopt, source.str(), torch::jit::nativeResolver(), nullptr);
  return torch::jit::toGraphFunction(unit.get_function(c10::QualifiedName("f"))).graph();
}

constexpr size_t parameters = 8;

// What the file's `# param` lines say: sizes and that they require grad.
torch::jit::Stack mlp4Inputs() {
  torch::jit::Stack stack = {values({16, 8}, 9)};
  const std::vector<std::vector<int64_t>> sizes = {{16, 8},  {16}, {16, 16}, {16},
                                                   {16, 16}, {16}, {4, 16},  {4}};
  for (size_t i = 0; i < parameters; ++i) {
    stack.push_back(leaf(sizes[i], static_cast<int64_t>(i)));
  }
  return stack;
}

struct HookFired {
  size_t parameter;
  uint64_t seq;
};

struct TrainingStep {
  double loss = 0;
  std::vector<at::Tensor> gradients;
  std::vector<HookFired> hooks;
  std::map<int, uint64_t> backward_begins;  // piece -> seq
};

TrainingStep train(const CompiledGraph& compiled) {
  TrainingStep step;
  torch::jit::Stack stack = mlp4Inputs();
  std::vector<at::Tensor> leaves;
  for (size_t i = 0; i < parameters; ++i) {
    leaves.push_back(stack[i + 1].toTensor());
    leaves.back().register_hook(
        [&compiled, i](const at::Tensor&) { compiled.timeline().hook(std::to_string(i)); });
  }
  compiled.timeline().clear();
  compiled.run(stack);
  const at::Tensor& output = stack[0].toTensor();
  at::Tensor loss = (output * detail::weightsOf(output, 0)).sum();
  loss.backward();
  step.loss = loss.item<double>();
  for (const at::Tensor& leaf : leaves) {
    step.gradients.push_back(leaf.grad());
  }
  for (const TimelineEvent& event : compiled.timeline().events()) {
    if (event.what == TimelineEvent::What::Hook) {
      step.hooks.push_back({std::stoul(event.name), event.seq});
    } else if (event.what == TimelineEvent::What::Backward) {
      EXPECT_TRUE(step.backward_begins.emplace(event.piece, event.seq).second) << "one event per piece";
    }
  }
  return step;
}

// Which piece each parameter's hook has to fire after, and before whose backward: "piece k fires before piece
// k-1".
std::string hookOrderViolations(const TrainingStep& step, const std::vector<size_t>& piece_of_parameter) {
  std::string found;
  std::vector<int> count(parameters, 0);
  for (const HookFired& hook : step.hooks) {
    ++count[hook.parameter];
    const int piece = static_cast<int>(piece_of_parameter[hook.parameter]);
    auto own = step.backward_begins.find(piece);
    if (own == step.backward_begins.end() || hook.seq < own->second) {
      found += fmt::format("parameter {} fires before piece {}\n", hook.parameter, piece);
    }
    if (piece > 0) {
      auto earlier = step.backward_begins.find(piece - 1);
      if (earlier == step.backward_begins.end() || hook.seq > earlier->second) {
        found += fmt::format("parameter {} fires after piece {} has begun\n", hook.parameter, piece - 1);
      }
    }
  }
  for (size_t i = 0; i < parameters; ++i) {
    if (count[i] != 1) {
      found += fmt::format("parameter {} fires {} times\n", i, count[i]);
    }
  }
  return found;
}

CompiledGraph broken(const BreakPolicy& policy, const CompileOptions& options = {}) {
  auto graph = mlp4();
  auto plan = planBreaks(*graph, policy);
  EXPECT_TRUE(plan) << plan.error().str();
  auto compiled = compile(graph, *plan, options);
  EXPECT_TRUE(compiled) << compiled.error().str();
  return *compiled;
}

const BreakPolicy asked = BreakPolicy::after({"linear", "relu_1"});
// w0 b0 | w1 b1 | w2 b2 w3 b3
const std::vector<size_t> piece_of_parameter = {0, 0, 1, 1, 2, 2, 2, 2};

TEST(Mlp4, BreaksWhereAsked) {
  auto plan = planBreaks(*mlp4(), asked);
  ASSERT_TRUE(plan) << plan.error().str();
  ASSERT_EQ(plan->pieces.size(), 3u);
  EXPECT_THAT(plan->pieces[0].ops, ElementsAre("linear"));
  EXPECT_THAT(plan->pieces[1].ops, ElementsAre("relu", "linear_1", "relu_1"));
  EXPECT_THAT(plan->pieces[2].ops, ElementsAre("linear_2", "relu_2", "linear_3"));
  EXPECT_THAT(plan->pieces[1].inputs, ElementsAre("w1", "b1", "linear"));
  EXPECT_THAT(plan->pieces[1].outputs, ElementsAre("relu_1"));
  EXPECT_THAT(plan->pieces[2].parameters, ElementsAre("w2", "b2", "w3", "b3"));
  EXPECT_TRUE(plan->refused.empty());
  for (const PlannedPiece& piece : plan->pieces) {
    EXPECT_EQ(piece.eager_reason, "");
  }
}

TEST(Mlp4, LossAndGradientsEqualEager) {
  TrainingStep step = train(broken(asked));
  torch::jit::Stack stack = mlp4Inputs();
  std::vector<at::Tensor> leaves;
  for (size_t i = 0; i < parameters; ++i) {
    leaves.push_back(stack[i + 1].toTensor());
  }
  interpreter(mlp4())(stack);
  const at::Tensor& output = stack[0].toTensor();
  at::Tensor loss = (output * detail::weightsOf(output, 0)).sum();
  loss.backward();
  EXPECT_NEAR(step.loss, loss.item<double>(), 1e-5 * std::abs(loss.item<double>()));
  for (size_t i = 0; i < parameters; ++i) {
    EXPECT_TRUE(at::allclose(step.gradients[i], leaves[i].grad(), 1e-5, 1e-5)) << i;
  }
}

TEST(Mlp4, HooksFireBetweenPieces) {
  CompiledGraph compiled = broken(asked);
  for (const CompiledPiece& piece : compiled.pieces()) {
    EXPECT_EQ(piece.kind, CompiledPiece::Kind::Compiled) << piece.reason;
    EXPECT_NE(piece.backward, nullptr);
  }
  EXPECT_EQ(hookOrderViolations(train(compiled), piece_of_parameter), "");
  EXPECT_EQ(hookOrderViolations(train(compiled), piece_of_parameter), "") << "second step";
}

TEST(Mlp4, UnbrokenGraphFailsTheSameAssertion) {
  EXPECT_NE(hookOrderViolations(train(broken(BreakPolicy::none())), piece_of_parameter), "");
}

TEST(Mlp4, AnEagerPieceKeepsThePromiseToo) {
  for (size_t eager : {0, 1, 2}) {
    CompileOptions options;
    options.force_eager = {eager};
    CompiledGraph compiled = broken(asked, options);
    EXPECT_EQ(compiled.pieces()[eager].kind, CompiledPiece::Kind::Eager);
    EXPECT_EQ(compiled.pieces()[eager].reason, "asked for");
    EXPECT_EQ(hookOrderViolations(train(compiled), piece_of_parameter), "") << "eager piece " << eager;
  }
}

}  // namespace
}  // namespace faultline::test
