// Real programs, trained in pieces: the loss curve is eager's.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "faultline/graph_break.h"
#include "generators/case/model.h"
#include "oracles/exec/execute.h"
#include "oracles/exec/prepare.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

constexpr int kSteps = 20;

struct Program {
  const char* file;
  const char* input;  // of `x`
  std::vector<int64_t> output;
  double learning_rate;
  std::vector<const char*> policies;
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all = {
      {"mlp4.py",
       "x=float32[16,8]",
       {16, 4},
       0.002,
       {"after linear relu_1", "every 1", "balanced 3 bytes", "ddp 300 1100", "ddp 300 1100 ddpoptimizer"}},
      {"conv_net.py",
       "x=float32[8,1,8,8]",
       {8, 4},
       0.01,
       {"after batch_norm max_pool2d", "markers", "every 2", "parameters", "shards"}},
      {"transformer_block.py",
       "x=float32[4,5,16]",
       {4, 5, 16},
       0.02,
       {"after softmax linear_3", "markers", "every 4", "kinds linear", "ddp 1000 3000"}}};
  return all;
}

struct Loaded {
  std::shared_ptr<Graph> graph;
  Case c;
  std::vector<std::string> names;
};

Loaded load(const Program& program) {
  auto model = loadModel(std::filesystem::path(FAULTLINE_CORPUS) / "examples" / program.file);
  EXPECT_TRUE(model) << model.error().str();
  Loaded loaded;
  for (ModelInput& input : model->inputs) {
    loaded.names.push_back(input.name);
    if (input.spec) {
      input.spec->requires_grad = input.name.rfind("running_", 0) != 0;
    }
  }
  auto x = readNamedInput(program.input);
  EXPECT_TRUE(x);
  auto c = modelToCase(*model, {*x});
  EXPECT_TRUE(c) << c.error().str();
  loaded.c = std::move(*c);
  auto prepared = prepareCase(loaded.c);
  EXPECT_TRUE(prepared);
  loaded.graph = prepared->graph;
  settleTypes(*loaded.graph, loaded.c.runs);
  return loaded;
}

struct Curve {
  std::vector<double> losses;
  torch::jit::Stack end;  // parameters and buffers
  size_t hooks = 0;
};

Curve train(const Program& program, const Loaded& loaded, const Runner& run,
            const std::function<void(size_t, const std::string&)>& hooked = {}) {
  Curve curve;
  const auto& specs = loaded.c.runs.front().inputs;
  for (size_t i = 0; i < specs.size(); ++i) {
    auto value = makeInput(specs[i], inputSeed(loaded.c.seed, i), curve.end);
    EXPECT_TRUE(value) << value.error().str();
    curve.end.push_back(*value);
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    at::Tensor tensor = curve.end[i].toTensor();
    if (tensor.requires_grad()) {
      tensor.register_hook([&, name = loaded.names[i]](const at::Tensor&) {
        ++curve.hooks;
        if (hooked) {
          hooked(curve.losses.size(), name);
        }
      });
    }
  }
  const at::Tensor target = values(program.output, 77);
  for (int step = 0; step < kSteps; ++step) {
    at::manual_seed(1000 + static_cast<uint64_t>(step));  // of dropout
    torch::jit::Stack stack = curve.end;
    run(stack);
    const at::Tensor loss = at::mse_loss(stack[0].toTensor(), target);
    torch::autograd::backward({loss}, {});
    curve.losses.push_back(loss.item<double>());
    at::NoGradGuard no_grad;
    for (const c10::IValue& value : curve.end) {
      at::Tensor tensor = value.toTensor();
      if (tensor.requires_grad()) {
        tensor.sub_(tensor.grad(), program.learning_rate);
        tensor.mutable_grad() = at::Tensor();
      }
    }
  }
  return curve;
}

TEST(Training, LossCurvesOfBrokenProgramsAreEagers) {
  for (const Program& program : programs()) {
    SCOPED_TRACE(program.file);
    const Loaded loaded = load(program);
    const Curve eager = train(program, loaded, interpreter(loaded.graph->copy()));
    ASSERT_EQ(eager.losses.size(), static_cast<size_t>(kSteps));
    EXPECT_LT(eager.losses.back(), 0.8 * eager.losses.front()) << "it does not learn: nothing is shown";
    for (const char* words : program.policies) {
      SCOPED_TRACE(words);
      auto plan = planBreaks(*loaded.graph, *BreakPolicy::read(words));
      ASSERT_TRUE(plan) << plan.error().str();
      EXPECT_GT(plan->pieces.size(), 1u);
      auto compiled = compile(loaded.graph, *plan);
      ASSERT_TRUE(compiled);
      size_t in_pieces = 0;
      for (const CompiledPiece& piece : compiled->pieces()) {
        in_pieces += piece.kind == CompiledPiece::Kind::Compiled;
      }
      EXPECT_GE(in_pieces, 2u);

      std::map<std::string, size_t> piece_of;
      for (size_t k = 0; k < plan->pieces.size(); ++k) {
        for (const std::string& name : plan->pieces[k].parameters) {
          piece_of[name] = k;
        }
      }
      size_t step = SIZE_MAX, last = 0, out_of_order = 0;
      const Curve broken =
          train(program, loaded, lean(*compiled), [&](size_t at_step, const std::string& name) {
            const size_t piece = piece_of.at(name);
            out_of_order += at_step == step && piece > last;
            step = at_step;
            last = piece;
          });
      EXPECT_EQ(out_of_order, 0u);
      EXPECT_EQ(broken.hooks, eager.hooks);
      for (int i = 0; i < kSteps; ++i) {
        EXPECT_NEAR(broken.losses[i], eager.losses[i], 1e-5 * (1 + eager.losses[i])) << "step " << i;
      }
      for (size_t i = 0; i < eager.end.size(); ++i) {
        EXPECT_TRUE(at::allclose(broken.end[i].toTensor(), eager.end[i].toTensor(), 1e-4, 1e-5))
            << loaded.names[i];
      }
    }
  }
}

// The same comparison sees a program that is not the same.
TEST(Training, AnotherRateIsAnotherCurve) {
  Program program = programs()[0];
  const Loaded loaded = load(program);
  const Curve a = train(program, loaded, interpreter(loaded.graph->copy()));
  program.learning_rate *= 1.01;
  const Curve b = train(program, loaded, interpreter(loaded.graph->copy()));
  EXPECT_GT(std::abs(a.losses.back() - b.losses.back()), 1e-5 * (1 + a.losses.back()));
}

}  // namespace
}  // namespace faultline::test
