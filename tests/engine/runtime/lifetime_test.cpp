// What a run keeps, for how long, and what happens when a program changes between runs or runs on several
// threads.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/autocast_mode.h>

#include "engine/runtime/compiled_graph.h"
#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

const char* program = R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mul(%x, %w)
  %b : Tensor = aten::exp(%a)
  %c : Tensor = aten::tanh(%b)
  %d : Tensor = aten::mul(%c, %x)
  return (%d))";

CompiledGraph compiledEvery(const std::shared_ptr<Graph>& graph, size_t ops) {
  auto plan = planBreaks(*graph, BreakPolicy::every(ops));
  EXPECT_TRUE(plan);
  auto compiled = compile(graph, *plan);
  EXPECT_TRUE(compiled);
  return *compiled;
}

TEST(Lifetime, SavedTensorsAreFreedAfterTheBackward) {
  const CompiledGraph compiled = compiledEvery(parse(program), 4);
  at::Tensor x = leaf({3}, 1);
  torch::jit::Stack stack = {x, leaf({3}, 2)};
  compiled.run(stack);
  const size_t held = x.use_count();
  at::Tensor loss = stack[0].toTensor().sum();
  loss.backward();
  EXPECT_LT(x.use_count(), held) << "the node still holds its input";
}

TEST(Lifetime, NothingIsHeldWithoutBackwardOnceTheResultIsGone) {
  at::Tensor x = leaf({3}, 1), w = leaf({3}, 2);
  const size_t before = x.use_count();
  {
    const CompiledGraph compiled = compiledEvery(parse(program), 2);
    for (int run = 0; run < 3; ++run) {
      torch::jit::Stack stack = {x, w};
      compiled.run(stack);
    }
  }
  EXPECT_EQ(x.use_count(), before) << "a node keeps itself alive";
}

TEST(Lifetime, DoubleBackwardLeavesNoCycle) {
  at::Tensor x = leaf({3}, 1), w = leaf({3}, 2);
  const size_t before = x.use_count();
  {
    const CompiledGraph compiled = compiledEvery(parse(program), 4);
    torch::jit::Stack stack = {x, w};
    compiled.run(stack);
    auto grads = torch::autograd::grad({stack[0].toTensor().sum()}, {x, w}, {}, true, true);
    (grads[0] * grads[1]).sum().backward();
    x.mutable_grad() = at::Tensor();
    w.mutable_grad() = at::Tensor();
  }
  EXPECT_EQ(x.use_count(), before);
}

TEST(Lifetime, TheNodesOutliveTheCompiledGraph) {
  at::Tensor x = leaf({3}, 1), loss;
  {
    const CompiledGraph compiled = compiledEvery(parse(program), 2);
    torch::jit::Stack stack = {x, leaf({3}, 2)};
    compiled.run(stack);
    loss = stack[0].toTensor().sum();
  }
  loss.backward();
  EXPECT_TRUE(x.grad().defined());
}

struct Variation {
  const char* name;
  Inputs inputs;
};

TEST(Flips, EachRunIsEagersWhateverTheRunBefore) {
  auto graph = parse(program);
  const CompiledGraph compiled = compiledEvery(graph, 3);
  const Variation variations[] = {
      {"both",
       [] {
         return torch::jit::Stack{leaf({3}, 1), leaf({3}, 2)};
       }},
      {"first",
       [] {
         return torch::jit::Stack{leaf({3}, 1), values({3}, 2)};
       }},
      {"second",
       [] {
         return torch::jit::Stack{values({3}, 1), leaf({3}, 2)};
       }},
      {"none",
       [] {
         return torch::jit::Stack{values({3}, 1), values({3}, 2)};
       }},
      {"shape",
       [] {
         return torch::jit::Stack{leaf({2, 4}, 1), leaf({4}, 2)};
       }},
      {"double",
       [] {
         return torch::jit::Stack{leaf({3}, 1, at::kDouble), leaf({3}, 2, at::kDouble)};
       }},
      {"mixed",
       [] {
         return torch::jit::Stack{leaf({3}, 1, at::kDouble), leaf({3}, 2)};
       }},
      {"half",
       [] {
         return torch::jit::Stack{leaf({3}, 1, at::kHalf), leaf({3}, 2, at::kHalf)};
       }},
      {"complex",
       [] {
         at::Tensor x = at::complex(values({3}, 1), values({3}, 3)).set_requires_grad(true);
         return torch::jit::Stack{x, leaf({3}, 2)};
       }},
      {"integer",
       [] {
         return torch::jit::Stack{leaf({3}, 1), at::arange(1, 4)};
       }},
      {"sparse first",
       [] {
         return torch::jit::Stack{values({3}, 1).to_sparse(), leaf({3}, 2)};
       }},
      {"throws",
       [] {
         return torch::jit::Stack{leaf({3}, 1), leaf({4}, 2)};
       }},
  };
  for (const Variation& before : variations) {
    for (const Variation& now : variations) {
      for (Backward::Kind kind : {Backward::Kind::All, Backward::Kind::Double}) {
        observe(lean(compiled), before.inputs, {kind, 0});
        EXPECT_EQ(difference(observe(interpreter(graph), now.inputs, {kind, 0}),
                             observe(lean(compiled), now.inputs, {kind, 0})),
                  "")
            << before.name << " then " << now.name;
      }
    }
  }
}

TEST(Flips, ManySetsOfInputsThatRequireGrad) {
  std::string ir = "graph(%i0 : Tensor";
  for (int i = 1; i < 8; ++i) {
    ir += ", %i" + std::to_string(i) + " : Tensor";
  }
  ir += "):\n  %m0 : Tensor = aten::mul(%i0, %i1)\n";
  for (int i = 2; i < 8; ++i) {
    ir += "  %m" + std::to_string(i - 1) + " : Tensor = aten::mul(%m" + std::to_string(i - 2) + ", %i" +
          std::to_string(i) + ")\n";
  }
  ir += "  return (%m6)";
  auto graph = parse(ir);
  const CompiledGraph compiled = compiledEvery(graph, 7);
  for (unsigned mask = 0; mask < 256; mask += 5) {
    auto inputs = [mask] {
      torch::jit::Stack stack;
      for (unsigned i = 0; i < 8; ++i) {
        stack.push_back(values({3}, i).set_requires_grad(mask >> i & 1));
      }
      return stack;
    };
    EXPECT_EQ(difference(observe(interpreter(graph), inputs, {}), observe(lean(compiled), inputs, {})), "")
        << mask;
  }
}

TEST(Modes, InferenceModeMakesNoNode) {
  const CompiledGraph compiled = compiledEvery(parse(program), 2);
  c10::InferenceMode mode;
  torch::jit::Stack stack = {values({3}, 1), values({3}, 2)};
  compiled.run(stack);
  EXPECT_TRUE(stack[0].toTensor().is_inference());
  EXPECT_FALSE(stack[0].toTensor().requires_grad());
}

TEST(Modes, InferenceTensorsOutsideInferenceModeAreAsInEager) {
  auto graph = parse(program);
  const CompiledGraph compiled = compiledEvery(graph, 2);
  auto inputs = [] {
    at::Tensor x;
    {
      c10::InferenceMode mode;
      x = values({3}, 1);
    }
    return torch::jit::Stack{x, leaf({3}, 2)};
  };
  EXPECT_EQ(difference(observe(interpreter(graph), inputs, {}), observe(lean(compiled), inputs, {})), "");
}

TEST(Modes, AutocastRunsTheOpsAsWritten) {
  auto graph = parse(R"(
graph(%x : Tensor, %w : Tensor):
  %a : Tensor = aten::mm(%x, %w)
  %b : Tensor = aten::relu(%a)
  return (%b))");
  const CompiledGraph compiled = compiledEvery(graph, 1);
  auto inputs = [] { return torch::jit::Stack{leaf({3, 4}, 1), leaf({4, 2}, 2)}; };
  auto under_autocast = [](const Runner& run) {
    return [run](torch::jit::Stack& stack) {
      at::autocast::set_autocast_enabled(at::kCPU, true);
      run(stack);
      at::autocast::set_autocast_enabled(at::kCPU, false);
      at::autocast::clear_cache();
    };
  };
  const Seen expected = observe(under_autocast(interpreter(graph)), inputs, {});
  ASSERT_EQ(expected.outputs[0].values.scalar_type(), at::kBFloat16);
  EXPECT_EQ(difference(expected, observe(under_autocast(lean(compiled)), inputs, {})), "");
}

TEST(Random, PiecesDrawTheSameStream) {
  auto graph = parse(R"(
graph(%x : Tensor, %w : Tensor):
  %half : float = prim::Constant[value=0.5]()
  %on : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %s : Tensor = aten::sin(%x)
  %r : Tensor = aten::rand_like(%w, %none, %none, %none, %none, %none)
  %m : Tensor = aten::max(%s, %w)
  %d : Tensor = aten::dropout(%m, %half, %on)
  %a : Tensor = aten::mul(%d, %r)
  %q : Tensor = aten::rand_like(%x, %none, %none, %none, %none, %none)
  %b : Tensor = aten::mul(%a, %q)
  %e : Tensor = aten::dropout(%b, %half, %on)
  return (%e, %r, %q))");
  auto inputs = [] { return torch::jit::Stack{leaf({3, 4}, 1), leaf({3, 4}, 2)}; };
  for (size_t ops : {1, 2, 3, 20}) {
    const CompiledGraph compiled = compiledEvery(graph, ops);
    auto seeded = [&](const Runner& run) {
      at::manual_seed(3);
      return observe(run, inputs, {});
    };
    EXPECT_EQ(difference(seeded(interpreter(graph)), seeded(lean(compiled))), "") << ops;
  }
}

TEST(GradMode, RegionsInsideTheGraphAreKept) {
  auto graph = parse(R"(
graph(%x : Tensor, %w : Tensor):
  %off : bool = prim::Constant[value=0]()
  %on : bool = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  aten::set_grad_enabled(%off)
  %b : Tensor = aten::sin(%a)
  %c : Tensor = aten::cos(%b)
  %d : Tensor = aten::exp(%a)
  aten::set_grad_enabled(%on)
  %e : Tensor = aten::mul(%c, %w)
  %f : Tensor = aten::mul(%e, %d)
  return (%f, %b))");
  EXPECT_EQ(
      compareAll(graph,
                 [] {
                   return torch::jit::Stack{leaf({3}, 1), leaf({3}, 2)};
                 },
                 {BreakPolicy::none(), BreakPolicy::every(1), BreakPolicy::every(2), BreakPolicy::every(3)}),
      "");
}

TEST(Threads, AnyNumberMayRunAtOnce) {
  auto graph = parse(program);
  const CompiledGraph compiled = compiledEvery(graph, 2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int run = 0; run < 25; ++run) {
        // Each thread asks for its own variants, some of which others are just making.
        auto inputs = [&] {
          return torch::jit::Stack{values({3}, t).set_requires_grad((run + t) % 3 != 0),
                                   values({3}, run).set_requires_grad((run + t) % 2 != 0)};
        };
        const Backward::Kind kind = run % 2 ? Backward::Kind::All : Backward::Kind::Double;
        wrong += !difference(observe(interpreter(graph), inputs, {kind, 0}),
                             observe(lean(compiled), inputs, {kind, 0}))
                      .empty();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Part, AnAutodiffThatRefusesLeavesThePartEager) {
  auto graph = parse(R"(
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::prod(%x, %none)
  return (%a))");
  const RunnablePart part(graph, /*compile=*/true, {true});
  EXPECT_FALSE(part.compiled());
  EXPECT_NE(part.reason(), "");
  torch::jit::Stack stack = {leaf({3}, 1)};
  EXPECT_EQ(part.run(stack, nullptr), nullptr);
  EXPECT_TRUE(stack[0].toTensor().requires_grad());
}

}  // namespace
}  // namespace faultline::test
