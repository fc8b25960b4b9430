// The graph-break compiler: what planning and compiling cost, and what a broken graph costs to train.
// Counters:
//   us_node   processor time per node of the graph, microseconds
//   stock     the same of libtorch's differentiate, its required passes and two Codes on the same pieces
//   extra     us_node - stock: good up to 8
//   budget    time by what it may take: good up to 1
//   growth    us_node by that of 1,000 nodes: 1 is linear
//   ratio     median of the ratios of interleaved pairs; low, high: its 95 % interval; the bound holds for
//   low
//   least     what to_whole would be if pieces cost no more than autograd nodes written by hand
#include <benchmark/benchmark.h>

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_grad_of.h>
#include <torch/csrc/jit/passes/lower_tuples.h>
#include <torch/csrc/jit/runtime/autodiff.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/autodiff/gradient.h"
#include "faultline/graph_break.h"
#include "tests/bench/break_graphs.h"
#include "tests/bench/hand_written.h"

namespace faultline::bench {
namespace {

constexpr size_t kSizes[] = {1000, 5000, 20000};
constexpr size_t kPieceSizes[] = {8, 64, 500};

double cpuTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <class Work>
double spent(Work&& work) {
  const double begin = cpuTime();
  work();
  return cpuTime() - begin;
}

double growthOf(const std::string& what, size_t nodes, double per_node) {
  static std::map<std::string, double> smallest;
  if (nodes == kSizes[0]) smallest[what] = per_node;
  auto it = smallest.find(what);
  return it == smallest.end() ? 0 : per_node / it->second;
}

void plan(benchmark::State& state) {
  const auto nodes = static_cast<size_t>(state.range(0)), ops = static_cast<size_t>(state.range(1));
  const auto graph = mixedGraph(nodes);
  double shortest = 1e18;
  for (auto _ : state) {
    const double ns = spent([&] { benchmark::DoNotOptimize(planBreaks(*graph, BreakPolicy::every(ops))); });
    state.SetIterationTime(ns * 1e-9);
    shortest = std::min(shortest, ns);
  }
  const double per_node = shortest / static_cast<double>(nodes) / 1000;
  state.counters["us_node"] = per_node;
  state.counters["budget"] = per_node / 5;
  state.counters["growth"] = growthOf("plan" + std::to_string(ops), nodes, per_node);
}

// What a user of libtorch alone would do with each piece, given as a graph.
void stockPiece(const std::shared_ptr<Graph>& piece) {
  auto gradient = torch::jit::differentiate(const_cast<std::shared_ptr<Graph>&>(piece));
  torch::jit::LowerGradOf(*gradient.df);
  torch::jit::runRequiredPasses(gradient.df);
  torch::jit::Inline(*gradient.df);
  torch::jit::LowerSimpleTuples(gradient.df);
  torch::jit::EliminateDeadCode(gradient.df);
  benchmark::DoNotOptimize(torch::jit::Code(gradient.f, "f"));
  benchmark::DoNotOptimize(torch::jit::Code(gradient.df, "df"));
}

void planAndCompile(benchmark::State& state) {
  const auto nodes = static_cast<size_t>(state.range(0)), ops = static_cast<size_t>(state.range(1));
  const auto graph = mixedGraph(nodes);
  std::vector<std::shared_ptr<Graph>> pieces;
  {
    auto plan = planBreaks(*graph, BreakPolicy::every(ops));
    // As written: compiled for no input that requires grad, a part is the piece's own ops.
    CompileOptions eager;
    for (size_t k = 0; k < plan->pieces.size(); ++k) eager.force_eager.push_back(k);
    auto compiled = compile(graph, *plan, eager);
    for (const CompiledPiece& piece : compiled->pieces()) pieces.push_back(piece.forward);
  }
  std::vector<double> ours, stock;
  for (auto _ : state) {
    std::vector<std::shared_ptr<Graph>> copies;
    for (const auto& piece : pieces) {
      copies.push_back(copyWithRequiresGrad(*piece, InputMask(piece->inputs().size(), true)));
    }
    stock.push_back(spent([&] {
      for (auto& copy : copies) stockPiece(copy);
    }));
    copies.clear();
    std::optional<CompiledGraph> made;
    ours.push_back(spent([&] {
      auto plan = planBreaks(*graph, BreakPolicy::every(ops));
      auto compiled = compile(graph, *plan);
      made = std::move(*compiled);
    }));
    for (const CompiledPiece& piece : made->pieces()) {
      if (piece.kind != CompiledPiece::Kind::Compiled) state.SkipWithError("a piece is not compiled");
    }
    state.SetIterationTime(ours.back() * 1e-9);
  }
  auto perNode = [&](const std::vector<double>& times) {
    return *std::min_element(times.begin(), times.end()) / static_cast<double>(nodes) / 1000;
  };
  state.counters["us_node"] = perNode(ours);
  state.counters["stock"] = perNode(stock);
  state.counters["extra"] = perNode(ours) - perNode(stock);
  state.counters["budget"] = perNode(ours) / (perNode(stock) + 8);
  state.counters["growth"] = growthOf("compile" + std::to_string(ops), nodes, perNode(ours));
}

// Compiled with equal parts shared against each for itself, where the layers of a network are alike:
//   shared   us_node with sharing
//   ratio    of the two
void compileAlike(benchmark::State& state) {
  const auto layers = static_cast<size_t>(state.range(0));
  const Mlp mlp(layers, 8);
  const auto plan = planBreaks(*mlp.graph, BreakPolicy::every(8));
  CompileOptions sharing;
  sharing.share_equal_parts = true;
  double apart = 1e18, shared = 1e18;
  for (auto _ : state) {
    apart = std::min(apart, spent([&] { benchmark::DoNotOptimize(compile(mlp.graph, *plan)); }));
    const double ns = spent([&] { benchmark::DoNotOptimize(compile(mlp.graph, *plan, sharing)); });
    shared = std::min(shared, ns);
    state.SetIterationTime(ns * 1e-9);
  }
  const double nodes = 2 * static_cast<double>(layers);
  state.counters["us_node"] = apart / nodes / 1000;
  state.counters["shared"] = shared / nodes / 1000;
  state.counters["ratio"] = shared / apart;
}

// Median of ratios and the order statistics that hold it with 95 % (binomial, normal approximation).
void reportRatio(benchmark::State& state, const std::string& name, std::vector<double> ratios, double bound) {
  std::sort(ratios.begin(), ratios.end());
  const auto n = static_cast<double>(ratios.size());
  const double half = 0.98 * std::sqrt(n);
  auto at = [&](double rank) { return ratios[static_cast<size_t>(std::clamp(rank, 0.0, n - 1))]; };
  const double low = at(std::floor(n / 2 - half));
  state.counters[name] = at(std::floor(n / 2));
  state.counters[name + "_low"] = low;
  state.counters[name + "_high"] = at(std::ceil(n / 2 + half));
  state.counters[name + "_budget"] = low / bound;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Bounds {
  int64_t width;
  double eager, whole;
};
constexpr Bounds kBounds[] = {{8, 0.95, 1.12}, {64, 1.00, 1.06}, {256, 1.02, 1.03}};

// A gradient of 256 KiB is at malloc's threshold for memory of its own: with it, figures swing.
void pinAllocator() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

void trainMlp(benchmark::State& state) {
  pinAllocator();
  const Bounds& bounds = kBounds[state.range(0)];
  at::manual_seed(1);
  Mlp mlp(64, bounds.width);
  auto compiledBy = [&](const BreakPolicy& policy) {
    auto plan = planBreaks(*mlp.graph, policy);
    return *compile(mlp.graph, *plan);
  };
  const CompiledGraph pieces = compiledBy(BreakPolicy::every(8)), whole = compiledBy(BreakPolicy::none());
  auto broken = [&](const CompiledGraph& compiled) {
    torch::jit::Stack stack;
    stack.reserve(1 + mlp.weights.size());
    stack.emplace_back(mlp.x);
    for (const at::Tensor& w : mlp.weights) stack.emplace_back(w);
    compiled.run(stack);
    return stack[0].toTensor();
  };
  auto step = [&](const auto& forward) {
    const double ns = spent([&] { torch::autograd::backward({forward()}, {mlp.seed}); });
    for (const at::Tensor& w : mlp.weights) w.mutable_grad().reset();
    return ns;
  };
  constexpr size_t kSides = 5;
  const std::function<double()> steps[kSides] = {
      [&] { return step([&] { return mlp.eager(); }); },
      [&] { return step([&] { return broken(pieces); }); },
      [&] { return step([&] { return broken(whole); }); },
      [&] { return step([&] { return handWritten(mlp, 4); }); },
      [&] { return step([&] { return handWritten(mlp, 64); }); },
  };
  for (int warm = 0; warm < 20; ++warm) {
    for (const auto& side : steps) side();
  }
  std::vector<double> to_eager, to_whole, whole_to_eager, least;
  double eager_us = 1e18;
  for (auto _ : state) {
    // Each side in turn goes first.
    double ns[kSides];
    for (size_t k = 0; k < kSides; ++k) {
      const size_t side = (to_eager.size() + k) % kSides;
      ns[side] = steps[side]();
    }
    state.SetIterationTime(ns[1] * 1e-9);
    to_eager.push_back(ns[1] / ns[0]);
    to_whole.push_back(ns[1] / ns[2]);
    whole_to_eager.push_back(ns[2] / ns[0]);
    least.push_back((ns[2] + ns[3] - ns[4]) / ns[2]);
    eager_us = std::min(eager_us, ns[0] / 1000);
  }
  state.counters["eager_us"] = eager_us;
  reportRatio(state, "ratio", to_eager, bounds.eager);
  reportRatio(state, "to_whole", to_whole, bounds.whole);
  state.counters["whole"] = median(whole_to_eager);
  state.counters["least"] = median(least);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (size_t ops : kPieceSizes) {
    for (size_t nodes : kSizes) benchmark->Args({static_cast<int64_t>(nodes), static_cast<int64_t>(ops)});
  }
  benchmark->UseManualTime()->Unit(benchmark::kMillisecond)->ArgNames({"nodes", "piece"});
}

BENCHMARK(plan)->Apply(sizes);
BENCHMARK(planAndCompile)->Apply(sizes);
BENCHMARK(compileAlike)->Arg(64)->Arg(1024)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(trainMlp)->DenseRange(0, 2)->Iterations(300)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace faultline::bench
