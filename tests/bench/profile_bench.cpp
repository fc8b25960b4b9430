// The profile protocol against one AliasDb of the same graph, in the same process. Counters:
//   ns_node   processor time per node of the graph it is given
//   aliasdb   the same of AliasDb's construction
//   ratio     the first by the second
//   budget    time by what it may take, see Budget: good up to 1
//   growth    ns_node by that of 1,000 nodes, which are in the cache: 1 is linear
#include <benchmark/benchmark.h>

#include <ctime>
#include <map>

#include <torch/csrc/jit/ir/alias_analysis.h>

#include "faultline/profile.h"
#include "tests/bench/profile_graphs.h"

namespace faultline::bench {
namespace {

constexpr size_t kSizes[] = {1000, 10000, 100000};

// Nanoseconds beside one AliasDb. Propagation looks at each node several times; a clone costs libtorch a
// node, its attributes and a renaming.
struct Budget {
  double per_node;
  double per_clone;
};
constexpr Budget kPropagate = {2000, 2500};
constexpr Budget kReadOnly = {1000, 0};
constexpr double kQuery = 200;

// Processor time of this thread: the other side runs on the same thread, and what else runs on the machine
// counts less.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <class Work>
double nanoseconds(Work&& work) {
  const double begin = now();
  work();
  return now() - begin;
}

std::shared_ptr<Graph> make(const Shape& shape, size_t nodes) {
  const auto made = [&](size_t size) { return (GraphMaker(size).*shape.make)(); };
  // Tables about operators are made when first asked for, once in a process.
  static const bool warm = validateProfileNode(made(100));
  (void)warm;
  return made(nodes);
}

// Of several, the shortest: what else runs on the machine only makes it longer.
double aliasDbTime(const std::shared_ptr<Graph>& graph, int64_t runs) {
  double shortest = 0;
  for (int64_t run = 0; run < runs; ++run) {
    const double time = nanoseconds([&] { torch::jit::AliasDb db(graph); });
    shortest = run == 0 ? time : std::min(shortest, time);
  }
  return shortest;
}

double growth(const std::string& what, const Shape& shape, size_t nodes, double per_node) {
  static std::map<std::pair<std::string, std::string>, double> smallest;
  if (nodes == kSizes[0]) smallest[{what, shape.name}] = per_node;
  auto it = smallest.find({what, shape.name});
  return it == smallest.end() ? 0 : per_node / it->second;
}

struct Measured {
  double shortest = 0;
  double total = 0;
  int64_t runs = 0;
  void add(benchmark::State& state, double ns) {
    state.SetIterationTime(ns * 1e-9);
    shortest = runs++ == 0 ? ns : std::min(shortest, ns);
    total += ns;
  }
};

void report(benchmark::State& state, const std::string& what, const Shape& shape, size_t size,
            const std::shared_ptr<Graph>& graph, double ns, Budget budget, size_t clones) {
  const double nodes = static_cast<double>(countNodes(*graph));
  const double alias_db = aliasDbTime(graph, state.max_iterations);
  state.counters["ns_node"] = ns / nodes;
  state.counters["aliasdb"] = alias_db / nodes;
  state.counters["ratio"] = ns / alias_db;
  state.counters["budget"] =
      ns / (alias_db + budget.per_node * nodes + budget.per_clone * static_cast<double>(clones));
  state.counters["growth"] = growth(what, shape, size, ns / nodes);
}

void index(benchmark::State& state, const Shape& shape, size_t size) {
  const auto graph = make(shape, size);
  Measured time;
  for (auto _ : state) time.add(state, nanoseconds([&] { ProfileIndex index(*graph); }));
  report(state, "index", shape, size, graph, time.shortest, kReadOnly, 0);
}

void propagate(benchmark::State& state, const Shape& shape, size_t size) {
  Measured time;
  size_t clones = 0;
  for (auto _ : state) {
    auto graph = make(shape, size);
    const size_t before = countNodes(*graph);
    time.add(state, nanoseconds([&] { propagateProfileNode(graph); }));
    clones = countNodes(*graph) - before;
  }
  if (clones == 0) return state.SkipWithError("nothing was cloned");
  const auto graph = make(shape, size);
  const double analysis = nanoseconds([&] { ProfileIndex index(*graph); });
  report(state, "propagate", shape, size, graph, time.shortest, kPropagate, clones);
  state.counters["clones"] = static_cast<double>(clones);
  state.counters["ns_clone"] = std::max(0.0, time.shortest - analysis) / static_cast<double>(clones);
}

// Of a propagated graph: that is what has no finding at every use.
void validate(benchmark::State& state, const Shape& shape, size_t size) {
  const auto graph = make(shape, size);
  propagateProfileNode(graph);
  Measured time;
  for (auto _ : state) {
    std::vector<ProfileFinding> findings;
    time.add(state, nanoseconds([&] { findings = findProfileViolations(*graph); }));
    if (!findings.empty()) return state.SkipWithError(findings[0].message.c_str());
  }
  report(state, "validate", shape, size, graph, time.shortest, kReadOnly, 0);
}

void removal(benchmark::State& state, const Shape& shape, size_t size) {
  Measured time;
  size_t removed = 0;
  for (auto _ : state) {
    auto graph = make(shape, size);
    propagateProfileNode(graph);
    time.add(state, nanoseconds([&] { removed = removeProfileNodes(*graph); }));
  }
  if (removed == 0) return state.SkipWithError("nothing was removed");
  const double each = time.shortest / static_cast<double>(removed);
  state.counters["ns_removed"] = each;
  state.counters["growth"] = growth("remove", shape, size, each);
}

template <class Ask>
void queries(benchmark::State& state, const char* what, const Shape& shape, size_t size, Ask ask) {
  const auto graph = make(shape, size);
  std::vector<torch::jit::Use> uses;
  for (const torch::jit::Node* node : nodesOf(*graph)) {
    if (node->kind() == torch::jit::prim::profile) continue;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      if (node->input(i)->type()->isSubtypeOf(*c10::TensorType::get()))
        uses.emplace_back(const_cast<torch::jit::Node*>(node), i);
    }
  }
  const ProfileIndex index(*graph);
  size_t known = 0;
  Measured time;
  for (auto _ : state) {
    time.add(state, nanoseconds([&] {
               for (const torch::jit::Use& use : uses) known += ask(index, use) ? 1 : 0;
             }));
  }
  if (known == 0) return state.SkipWithError("no use has an answer");
  const double each = time.shortest / static_cast<double>(uses.size());
  state.counters["ns_query"] = each;
  state.counters["budget"] = each / kQuery;
  state.counters["growth"] = growth(what, shape, size, each);
}

void known(benchmark::State& state, const Shape& shape, size_t size) {
  queries(state, "known", shape, size, [](const ProfileIndex& index, const torch::jit::Use& use) {
    return index.known(use).type != nullptr;
  });
}

void lookup(benchmark::State& state, const Shape& shape, size_t size) {
  queries(state, "lookup", shape, size, [](const ProfileIndex& index, const torch::jit::Use& use) {
    return index.lookup(use).type != nullptr;
  });
}

bool registerAll() {
  using Function = void (*)(benchmark::State&, const Shape&, size_t);
  const std::pair<const char*, Function> benchmarks[] = {{"index", index},       {"propagate", propagate},
                                                         {"validate", validate}, {"remove", removal},
                                                         {"known", known},       {"lookup", lookup}};
  for (const auto& [name, function] : benchmarks) {
    for (const Shape& shape : kShapes) {
      for (size_t size : kSizes) {
        const std::string full = std::string(name) + "/" + shape.name + "/" + std::to_string(size);
        benchmark::RegisterBenchmark(full.c_str(), function, shape, size)
            ->UseManualTime()
            ->Iterations(size < 10000    ? 100
                         : size < 100000 ? 10
                                         : 3)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  return true;
}

const bool registered = registerAll();

}  // namespace
}  // namespace faultline::bench
