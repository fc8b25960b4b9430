// Every kind of hook that C++ PyTorch has, on parameters, inputs, seams and pieces of a broken graph, next to
// the same on the graph in the interpreter.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "tests/engine/runtime/equivalence.h"

namespace faultline::test {
namespace {

using testing::ElementsAre;
using torch::autograd::variable_list;
using Log = std::shared_ptr<std::vector<std::string>>;

// Three pieces with a parameter each.
const char* hooked_program = R"(
graph(%x : Tensor, %w0 : Tensor, %w1 : Tensor, %w2 : Tensor):
  %a : Tensor = aten::mul(%x, %w0)
  %b : Tensor = aten::sin(%a)
  %c : Tensor = aten::mul(%b, %w1)
  %d : Tensor = aten::cos(%c)
  %e : Tensor = aten::mul(%d, %w2)
  return (%e))";

CompiledGraph brokenProgram(const CompileOptions& options = {}) {
  auto graph = parse(hooked_program);
  auto plan = planBreaks(*graph, BreakPolicy::after({"sin", "cos"}));
  EXPECT_TRUE(plan);
  auto compiled = compile(graph, *plan, options);
  EXPECT_TRUE(compiled);
  return *compiled;
}

struct Tensors {
  at::Tensor x, w[3];
  torch::jit::Stack stack() const { return {x, w[0], w[1], w[2]}; }
};

// `nonleaf`: the input is the result of an op on a leaf, as inside a larger program.
Tensors tensors(bool nonleaf = false) {
  Tensors made{nonleaf ? leaf({3}, 1) * 1 : values({3}, 1), {leaf({3}, 2), leaf({3}, 3), leaf({3}, 4)}};
  return made;
}

at::Tensor forward(const Runner& run, const Tensors& tensors) {
  torch::jit::Stack stack = tensors.stack();
  run(stack);
  return stack[0].toTensor();
}

void backwardFrom(const at::Tensor& output) { torch::autograd::backward({output}, {at::ones_like(output)}); }

std::string number(const at::Tensor& tensor) {
  return tensor.defined() ? fmt::format("{:.4f}", tensor.sum().item<double>()) : "undefined";
}

class LogPre : public torch::autograd::FunctionPreHook {
 public:
  LogPre(Log log, std::string name) : log_(std::move(log)), name_(std::move(name)) {}
  variable_list operator()(const variable_list& grads) override {
    log_->push_back(name_ + " pre " + number(grads[0]));
    return grads;
  }

 private:
  Log log_;
  std::string name_;
};

class LogPost : public torch::autograd::FunctionPostHook {
 public:
  LogPost(Log log, std::string name) : log_(std::move(log)), name_(std::move(name)) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    log_->push_back(name_ + " post " + number(inputs[0]));
    return outputs;
  }

 private:
  Log log_;
  std::string name_;
};

class LogAccumulated : public torch::autograd::PostAccumulateGradHook {
 public:
  LogAccumulated(Log log, std::string name) : log_(std::move(log)), name_(std::move(name)) {}
  void operator()(const at::Tensor& tensor) override {
    log_->push_back(name_ + " accumulated " + number(tensor.grad()));
  }

 private:
  Log log_;
  std::string name_;
};

// All kinds on one leaf. The accumulator is kept alive as libtorch asks for.
void hookLeaf(const at::Tensor& w, const std::string& name, const Log& log,
              std::vector<compat::NodePtr>& keep) {
  w.register_hook([log, name](const at::Tensor& grad) { log->push_back(name + " tensor " + number(grad)); });
  keep.push_back(torch::autograd::impl::grad_accumulator(w));
  keep.back()->add_pre_hook(std::make_unique<LogPre>(log, name));
  keep.back()->add_post_hook(std::make_unique<LogPost>(log, name));
  torch::autograd::impl::set_post_acc_grad_hooks(w, std::make_unique<LogAccumulated>(log, name));
}

std::vector<std::string> linesOf(const Log& log, const std::string& name) {
  std::vector<std::string> lines;
  for (const std::string& line : *log) {
    if (line.rfind(name + " ", 0) == 0) {
      lines.push_back(line);
    }
  }
  return lines;
}

// Both forms, and with a piece that runs eagerly.
std::vector<CompiledGraph> allForms() {
  CompileOptions middle;
  middle.force_eager = {1};
  return {brokenProgram(), brokenProgram(middle)};
}

// `train` gives what it saw. Returns what it saw in eager.
template <class Train>
auto expectAsEager(Train train) {
  const auto eager = train(interpreter(parse(hooked_program)));
  for (const CompiledGraph& compiled : allForms()) {
    EXPECT_EQ(train(lean(compiled)), eager);
  }
  return eager;
}

TEST(Hooks, EveryKindOnParametersInEagersOrderPieceByPiece) {
  auto train = [](const Runner& run) {
    auto log = std::make_shared<std::vector<std::string>>();
    std::vector<compat::NodePtr> keep;
    const Tensors in = tensors();
    for (size_t i = 0; i < 3; ++i) {
      hookLeaf(in.w[i], "w" + std::to_string(i), log, keep);
    }
    backwardFrom(forward(run, in));
    return log;
  };
  const Log eager = train(interpreter(parse(hooked_program)));
  ASSERT_EQ(eager->size(), 12u);
  for (const CompiledGraph& compiled : allForms()) {
    const Log broken = train(lean(compiled));
    ASSERT_EQ(broken->size(), 12u);
    for (size_t i = 0; i < 3; ++i) {
      const std::string name = "w" + std::to_string(i);
      EXPECT_EQ(linesOf(broken, name), linesOf(eager, name));
      // A piece's hooks are done before those of the piece before it.
      EXPECT_EQ(broken->at(4 * (2 - i)).substr(0, 2), name);
    }
  }
}

TEST(Hooks, EveryKindOnAnInputThatIsNoLeaf) {
  auto train = [](const Runner& run) {
    auto log = std::make_shared<std::vector<std::string>>();
    const Tensors in = tensors(/*nonleaf=*/true);
    in.x.register_hook([log](const at::Tensor& grad) { log->push_back("tensor " + number(grad)); });
    in.x.retain_grad();
    in.x.grad_fn()->add_pre_hook(std::make_unique<LogPre>(log, "x"));
    in.x.grad_fn()->add_post_hook(std::make_unique<LogPost>(log, "x"));
    backwardFrom(forward(run, in));
    log->push_back("retained " + number(in.x.grad()));
    return *log;
  };
  EXPECT_EQ(expectAsEager(train).size(), 4u);
}

TEST(Hooks, EveryKindOnASeamAndItsPieceNode) {
  // Eager: the gradient of sin's result, and of mul's operands behind it.
  std::string seam_gradient;
  {
    const Tensors in = tensors();
    const at::Tensor b = at::sin(in.x * in.w[0]);
    b.retain_grad();
    backwardFrom(at::cos(b * in.w[1]) * in.w[2]);
    seam_gradient = number(b.grad());
  }
  for (CompiledGraph& compiled : std::vector<CompiledGraph>{brokenProgram()}) {
    auto log = std::make_shared<std::vector<std::string>>();
    ASSERT_TRUE(compiled.onSeam("sin", [log](const at::Tensor& grad) {
      log->push_back("seam " + number(grad));
      return at::Tensor();
    }));
    const Tensors in = tensors();
    in.w[1].register_hook([log](const at::Tensor&) { log->push_back("w1"); });
    in.w[0].register_hook([log](const at::Tensor&) { log->push_back("w0"); });
    const at::Tensor output = forward(lean(compiled), in);
    compiled.seam("sin").retain_grad();
    compiled.pieceNode(0)->add_pre_hook(std::make_unique<LogPre>(log, "node"));
    compiled.pieceNode(0)->add_post_hook(std::make_unique<LogPost>(log, "node"));
    backwardFrom(output);
    EXPECT_EQ(number(compiled.seam("sin").grad()), seam_gradient);
    EXPECT_THAT(*log, ElementsAre("w1", "seam " + seam_gradient, "node pre " + seam_gradient,
                                  "node post " + seam_gradient, "w0"));
  }
}

TEST(Hooks, ACallbackAtTheEndOfTheBackwardComesLast) {
  for (const CompiledGraph& compiled : allForms()) {
    auto log = std::make_shared<std::vector<std::string>>();
    const Tensors in = tensors();
    in.w[2].register_hook([log, in](const at::Tensor&) {
      torch::autograd::Engine::get_default_engine().queue_callback([log, in] {
        log->push_back("end");
        for (const at::Tensor& w : in.w) {
          EXPECT_TRUE(w.grad().defined());
        }
      });
    });
    in.w[0].register_hook([log](const at::Tensor&) { log->push_back("w0"); });
    backwardFrom(forward(lean(compiled), in));
    EXPECT_THAT(*log, ElementsAre("w0", "end"));
  }
}

TEST(Hooks, OneThatThrowsLeavesEarlierPiecesUntouchedAndTheGraphUsable) {
  for (const CompiledGraph& compiled : allForms()) {
    const Tensors in = tensors();
    in.w[1].register_hook([](const at::Tensor&) { throw std::runtime_error("hook"); });
    EXPECT_THROW(backwardFrom(forward(lean(compiled), in)), std::runtime_error);
    EXPECT_TRUE(in.w[2].grad().defined());
    EXPECT_FALSE(in.w[0].grad().defined());
    const Tensors again = tensors(), eager = tensors();
    backwardFrom(forward(lean(compiled), again));
    backwardFrom(forward(interpreter(parse(hooked_program)), eager));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(at::allclose(again.w[i].grad(), eager.w[i].grad()));
    }
  }
}

TEST(Hooks, OneThatReplacesItsGradientChangesThatParameterAlone) {
  auto train = [](const Runner& run) {
    const Tensors in = tensors();
    in.w[1].register_hook([](const at::Tensor& grad) { return grad * 3; });
    backwardFrom(forward(run, in));
    return number(in.w[0].grad()) + " " + number(in.w[1].grad()) + " " + number(in.w[2].grad());
  };
  expectAsEager(train);
}

TEST(Hooks, OneThatEmptiesTheGradientAfterAccumulation) {
  // As an optimiser does that steps inside the backward.
  class Step : public torch::autograd::PostAccumulateGradHook {
   public:
    void operator()(const at::Tensor& tensor) override {
      at::NoGradGuard no_grad;
      at::Tensor data = tensor.data();
      data.add_(tensor.grad(), -0.1);
      tensor.mutable_grad().reset();
    }
  };
  auto train = [](const Runner& run) {
    const Tensors in = tensors();
    for (const at::Tensor& w : in.w) {
      torch::autograd::impl::set_post_acc_grad_hooks(w, std::make_unique<Step>());
    }
    for (int step = 0; step < 3; ++step) {
      backwardFrom(forward(run, in));
    }
    EXPECT_FALSE(in.w[0].grad().defined());
    return number(in.w[0]) + " " + number(in.w[1]) + " " + number(in.w[2]);
  };
  expectAsEager(train);
}

TEST(Hooks, OneThatRemovesItselfFiresOnce) {
  auto train = [](const Runner& run) {
    auto log = std::make_shared<std::vector<std::string>>();
    const Tensors in = tensors();
    auto id = std::make_shared<unsigned>(0);
    *id = in.w[1].register_hook([log, id, w = in.w[1]](const at::Tensor& grad) {
      log->push_back("once " + number(grad));
      w.remove_hook(*id);
    });
    in.w[1].register_hook([log](const at::Tensor& grad) { log->push_back("always " + number(grad)); });
    for (int pass = 0; pass < 2; ++pass) {
      backwardFrom(forward(run, in));
    }
    return *log;
  };
  EXPECT_EQ(expectAsEager(train).size(), 3u);
}

TEST(Hooks, OneThatRegistersAnotherOnAnEarlierPieceSeesItFire) {
  auto train = [](const Runner& run) {
    auto log = std::make_shared<std::vector<std::string>>();
    const Tensors in = tensors();
    in.w[0].register_hook([log](const at::Tensor&) { log->push_back("old"); });
    in.w[2].register_hook([log, w = in.w[0]](const at::Tensor&) {
      w.register_hook([log](const at::Tensor& grad) { log->push_back("new " + number(grad)); });
    });
    backwardFrom(forward(run, in));
    return *log;
  };
  EXPECT_EQ(expectAsEager(train).size(), 2u);
}

TEST(Hooks, OneThatRunsABackwardOfTheSameGraph) {
  for (const CompiledGraph& compiled : allForms()) {
    const Tensors outer = tensors(), inner = tensors(), eager = tensors();
    outer.w[2].register_hook([&](const at::Tensor&) { compiled.timeline().hook("w2"); });
    outer.w[1].register_hook([&](const at::Tensor&) {
      at::AutoGradMode grad(true);  // hooks run without
      inner.w[1].register_hook([&](const at::Tensor&) { compiled.timeline().hook("inner w1"); });
      backwardFrom(forward(lean(compiled), inner));
      compiled.timeline().hook("w1");
    });
    outer.w[0].register_hook([&](const at::Tensor&) { compiled.timeline().hook("w0"); });
    compiled.timeline().clear();
    backwardFrom(forward(lean(compiled), outer));
    backwardFrom(forward(interpreter(parse(hooked_program)), eager));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(at::allclose(outer.w[i].grad(), eager.w[i].grad())) << i;
      EXPECT_TRUE(at::allclose(inner.w[i].grad(), eager.w[i].grad())) << i;
    }
    // Each hook belongs to a piece of its own pass.
    std::map<std::string, int> piece_of;
    for (const TimelineEvent& event : compiled.timeline().events()) {
      if (event.what == TimelineEvent::What::Hook) {
        piece_of[event.name] = event.piece;
      }
    }
    EXPECT_EQ(piece_of, (std::map<std::string, int>{{"w2", 2}, {"w1", 1}, {"inner w1", 1}, {"w0", 0}}));
  }
}

TEST(Hooks, ANestedBackwardOfTheRunItselfWithARetainedGraph) {
  auto train = [](const Runner& run) {
    const Tensors in = tensors();
    const at::Tensor output = forward(run, in);
    bool nested = false;
    in.w[2].register_hook([&](const at::Tensor&) {
      if (!nested) {
        nested = true;
        torch::autograd::backward({output}, {at::ones_like(output)}, /*retain_graph=*/true);
      }
    });
    torch::autograd::backward({output}, {at::ones_like(output)}, /*retain_graph=*/true);
    return number(in.w[0].grad()) + " " + number(in.w[1].grad()) + " " + number(in.w[2].grad());
  };
  expectAsEager(train);
}

TEST(Hooks, UnderCreateGraphTheSecondPassHasEagersCountsAndGradients) {
  auto train = [](const Runner& run) {
    auto counts = std::make_shared<std::map<std::string, int>>();
    const Tensors in = tensors();
    for (size_t i = 0; i < 3; ++i) {
      in.w[i].register_hook([counts, i](const at::Tensor&) { ++(*counts)["w" + std::to_string(i)]; });
    }
    const at::Tensor output = forward(run, in);
    torch::autograd::backward({output}, {at::ones_like(output)}, true, /*create_graph=*/true);
    const at::Tensor penalty = in.w[0].grad().square().sum();
    for (const at::Tensor& w : in.w) {
      w.mutable_grad() = at::Tensor();
    }
    torch::autograd::backward({penalty}, {});
    std::string text;
    for (const auto& [name, count] : *counts) {
      text += fmt::format("{} {} ", name, count);
    }
    return text + number(in.w[0].grad()) + " " + number(in.w[1].grad()) + " " + number(in.w[2].grad());
  };
  expectAsEager(train);
}

// Values that an eager op, or different results, wait for stand between parts: a second backward may begin at
// one of them and then leaves the producers of the others alone.
TEST(Hooks, ASecondBackwardTouchesWhatEagersTouches) {
  const char* programs[] = {R"(
graph(%a : Tensor, %b : Tensor, %c : Tensor):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %d : Tensor = aten::tanh(%a)
  %list : Tensor[] = prim::ListConstruct(%b, %b)
  %e : Tensor = aten::stack(%list, %zero)
  %f : Tensor = aten::mul(%e, %d)
  %g : Tensor = aten::sum(%c, %none)
  %h : Tensor = aten::add(%f, %g, %one)
  return (%h))",
                            R"(
graph(%a : Tensor, %b : Tensor, %c : Tensor):
  %d : Tensor = aten::sin(%a)
  %e : Tensor = aten::cos(%b)
  %f : Tensor = aten::mul(%d, %e)
  %g : Tensor = aten::mul(%d, %c)
  %h : Tensor = aten::mul(%e, %c)
  %i : Tensor = aten::mul(%g, %h)
  return (%f, %i))",
                            R"(
graph(%a : Tensor, %b : Tensor, %c : Tensor):
  %d : Tensor = aten::sin(%a)
  %e : Tensor = aten::exp(%b)
  %f : Tensor = aten::mul(%d, %e)
  %g : Tensor = aten::mul(%f, %c)
  %h : Tensor = aten::tanh(%f)
  %i : Tensor = aten::mul(%h, %d)
  return (%g, %i))"};
  for (const char* program : programs) {
    auto graph = parse(program);
    for (size_t from = 0; from < 3; ++from) {
      SCOPED_TRACE(fmt::format("{}\nfrom the gradient of input {}", program, from));
      auto seen = [&](const Runner& run) {
        std::vector<at::Tensor> in = {leaf({2, 2}, 1, at::kDouble), leaf({2, 2}, 2, at::kDouble),
                                      leaf({2, 2}, 3, at::kDouble)};
        std::vector<int> count(3);
        torch::jit::Stack stack(in.begin(), in.end());
        run(stack);
        at::Tensor loss = stack[0].toTensor().sum();
        if (stack.size() > 1) {
          loss = loss + stack[1].toTensor().square().sum();
        }
        auto gradients = torch::autograd::grad({loss}, {in[from]}, {}, true, true);
        for (size_t i = 0; i < 3; ++i) {
          in[i].register_hook([&count, i](const at::Tensor&) { ++count[i]; });
        }
        if (gradients[0].requires_grad()) {
          torch::autograd::backward({gradients[0].square().sum()}, {});
        }
        return fmt::format("{} {}, {} {}, {} {}", count[0], number(in[0].grad()), count[1],
                           number(in[1].grad()), count[2], number(in[2].grad()));
      };
      const std::string eager = seen(interpreter(graph));
      for (const BreakPolicy& policy : {BreakPolicy::none(), BreakPolicy::every(2)}) {
        auto compiled = compile(graph, *planBreaks(*graph, policy));
        ASSERT_TRUE(compiled);
        EXPECT_EQ(seen(lean(*compiled)), eager);
      }
    }
  }
}

// How many gradients are ready at any time: at the end of each piece the very ones that eager has by then.
TEST(Hooks, GradientsAreReadyAsEarlyAsInEagerWithinOnePiece) {
  std::string ir = "graph(%x : Tensor";
  constexpr size_t layers = 12;
  for (size_t i = 0; i < layers; ++i) {
    ir += fmt::format(", %w{} : Tensor", i);
  }
  ir += "):\n";
  std::string last = "x";
  for (size_t i = 0; i < layers; ++i) {
    ir += fmt::format("  %a{0} : Tensor = aten::mul(%{1}, %w{0})\n  %h{0} : Tensor = aten::tanh(%a{0})\n", i,
                      last);
    last = fmt::format("h{}", i);
  }
  auto graph = parse(ir + "  return (%" + last + ")");
  auto orderOf = [](const Runner& run) {
    std::vector<size_t> order;
    torch::jit::Stack stack{values({4}, 1)};
    for (size_t i = 0; i < layers; ++i) {
      stack.push_back(leaf({4}, static_cast<int64_t>(i) + 2));
      stack.back().toTensor().register_hook([&order, i](const at::Tensor&) { order.push_back(i); });
    }
    run(stack);
    backwardFrom(stack[0].toTensor());
    return order;
  };
  const std::vector<size_t> eager = orderOf(interpreter(graph));
  ASSERT_EQ(eager.size(), layers);
  for (size_t ops : {2u, 4u, 6u, 8u}) {
    auto compiled = compile(graph, *planBreaks(*graph, BreakPolicy::every(ops)));
    ASSERT_TRUE(compiled);
    const std::vector<size_t> broken = orderOf(lean(*compiled));
    ASSERT_EQ(broken.size(), layers);
    const size_t in_piece = ops / 2, in_last = (layers - 1) % in_piece + 1;
    for (size_t ready = in_last; ready <= layers; ready += in_piece) {
      const std::set<size_t> here(broken.begin(), broken.begin() + static_cast<std::ptrdiff_t>(ready));
      const std::set<size_t> there(eager.begin(), eager.begin() + static_cast<std::ptrdiff_t>(ready));
      EXPECT_EQ(here, there) << ops << " ops a piece, " << ready << " gradients";
    }
  }
}

}  // namespace
}  // namespace faultline::test
