// Our recorder: what it sees, that it changes nothing, and that libtorch's own profiling says the same.
#include <thread>

#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/profiling_record.h>

#include "faultline/graph_break.h"
#include "faultline/recorder.h"
#include "tests/engine/profile/support.h"

namespace faultline {
namespace {

using torch::jit::Stack;

Stack interpret(const std::shared_ptr<Graph>& graph, Stack stack) {
  torch::jit::Code code(graph, "recorded");
  torch::jit::InterpreterState(code).run(stack);
  return stack;
}

Recorder instrumented(const Graph& graph, RecorderOptions options = {}) {
  auto recorder = Recorder::instrument(graph, options);
  EXPECT_TRUE(recorder.has_value());
  return std::move(*recorder);
}

Stack recordRun(const Recorder& recorder, Stack stack) {
  const Recorder::Run run(recorder);
  return interpret(recorder.graph(), std::move(stack));
}

// The site of the n-th use by `user`, at `offset`.
size_t siteOf(const Recording& recording, const std::string& user, size_t n = 0, size_t offset = 0) {
  for (size_t k = 0; k < recording.sites.size(); ++k) {
    if (recording.sites[k].user == user && recording.sites[k].offset == offset && n-- == 0) return k;
  }
  ADD_FAILURE() << "no site of " << user;
  return 0;
}

std::shared_ptr<Graph> straightLine() {
  return test::parse(R"(
graph(%x : Tensor, %w : Tensor):
  %1 : int = prim::Constant[value=1]()
  %m : Tensor = aten::mul(%x, %w)
  %r : Tensor = aten::relu(%m)
  %a : Tensor = aten::add(%r, %x, %1)
  %s : Tensor = aten::sigmoid(%a)
  return (%s, %r)
)");
}

TEST(Recorder, SeesEveryFieldOfEveryUse) {
  auto graph = straightLine();
  const std::string before = writeGraph(*graph);
  Recorder recorder = instrumented(*graph);
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor w = at::ones({3}).requires_grad_();
  const Stack out = recordRun(recorder, {x, w});
  EXPECT_EQ(writeGraph(*graph), before);
  const Recording recording = recorder.recording();
  ASSERT_EQ(recording.sites.size(), 8u);
  ASSERT_EQ(recording.runs.size(), 1u);
  const SeenTensor& seen = recording.runs[0].sites[siteOf(recording, "aten::mul", 0, 1)];
  EXPECT_EQ(seen.times, 1u);
  EXPECT_TRUE(seen.defined.known() && seen.defined.value);
  EXPECT_EQ(seen.dtype.value, at::kFloat);
  EXPECT_EQ(seen.rank.value, 1u);
  ASSERT_EQ(seen.sizes.size(), 1u);
  EXPECT_EQ(seen.sizes[0].value, 3);
  EXPECT_EQ(seen.strides[0].value, 1);
  EXPECT_TRUE(seen.requires_grad.value && seen.grad_mode.value && seen.stock_grad.value);
  EXPECT_FALSE(recording.runs[0].sites[siteOf(recording, "aten::mul", 0, 0)].requires_grad.value);
  EXPECT_TRUE(out[0].toTensor().requires_grad());
}

TEST(Recorder, GivesBackTheSameObjectsAndGradients) {
  auto graph = test::parse("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%x, %y)\n");
  Recorder recorder = instrumented(*graph);
  const at::Tensor x = at::ones({2}).requires_grad_();
  const Stack out = recordRun(recorder, {x});
  EXPECT_TRUE(out[0].toTensor().is_same(x));
  EXPECT_EQ(out[1].toTensor().grad_fn()->name(), "NegBackward0");
}

TEST(Recorder, WhatDiffersBetweenRunsVaries) {
  auto graph = straightLine();
  Recorder recorder = instrumented(*graph);
  recordRun(recorder, {at::ones({2, 3}), at::ones({3})});
  recordRun(recorder, {at::ones({4, 3}), at::ones({3}).requires_grad_()});
  const Recording recording = recorder.recording();
  ASSERT_EQ(recording.runs.size(), 2u);
  const SeenTensor seen = recording.merged(siteOf(recording, "aten::relu"));
  EXPECT_EQ(seen.times, 2u);
  ASSERT_EQ(seen.sizes.size(), 2u);
  EXPECT_TRUE(seen.sizes[0].varies);
  EXPECT_TRUE(seen.sizes[1].known());
  EXPECT_TRUE(seen.requires_grad.varies);
  EXPECT_TRUE(seen.dtype.known());
  const SeenTensor other_rank = [&] {
    recordRun(recorder, {at::ones({5, 2, 3}), at::ones({3})});
    const Recording all = recorder.recording();
    return all.merged(siteOf(all, "aten::relu"));
  }();
  EXPECT_TRUE(other_rank.rank.varies);
  EXPECT_TRUE(other_rank.sizes.empty());
}

TEST(Recorder, LoopsArmsAndOptionals) {
  auto graph = test::parse(R"(
graph(%x : Tensor, %n : int, %c : bool, %o : Tensor?):
  %true : bool = prim::Constant[value=1]()
  %dim : int = prim::Constant[value=0]()
  %l : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::unsqueeze(%a, %dim)
      -> (%true, %b)
  %r : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::relu(%l)
      -> (%p)
    block1():
      %q : Tensor = aten::neg(%l)
      -> (%q)
  %t : (Tensor, Tensor?) = prim::TupleConstruct(%r, %o)
  return (%t)
)");
  Recorder recorder = instrumented(*graph);
  recordRun(recorder, {at::ones({2}), 3, true, c10::IValue()});
  const Recording recording = recorder.recording();
  const SeenTensor looped = recording.merged(siteOf(recording, "aten::unsqueeze"));
  EXPECT_EQ(looped.times, 3u);
  EXPECT_TRUE(looped.rank.varies);
  EXPECT_EQ(recording.merged(siteOf(recording, "aten::relu")).times, 1u);
  EXPECT_EQ(recording.merged(siteOf(recording, "aten::neg")).times, 0u);
  const SeenTensor none = recording.merged(siteOf(recording, "prim::TupleConstruct", 0, 1));
  EXPECT_EQ(none.times, 1u);
  EXPECT_EQ(none.absent, 1u);
  EXPECT_FALSE(none.defined.seen);

  // As nodes: unseen where the arm never ran, nothing where there was only None.
  auto profiled = withProfileNodes(*graph, recording);
  size_t unseen = 0;
  for (Node* node : test::allNodes(*profiled)) {
    if (node->kind() != torch::jit::prim::profile) continue;
    unseen += *node->ty(torch::jit::attr::profiled_type) == *c10::TensorType::get() ? 1 : 0;
    EXPECT_NE(node->output()->type()->kind(), c10::TypeKind::OptionalType);
  }
  EXPECT_EQ(unseen, 2u);  // neg's operand and what its arm returns
  const ProfileLookup join = lookupProfile(test::useBy(*profiled, "prim::TupleConstruct"));
  EXPECT_EQ(join.rank.value, 4u);
}

TEST(Recorder, RequiresGradWithoutGradMode) {
  auto graph = straightLine();
  Recorder recorder = instrumented(*graph);
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor w = at::ones({3}).requires_grad_();
  {
    const at::NoGradGuard no_grad;
    recordRun(recorder, {x, w});
  }
  const Recording recording = recorder.recording();
  EXPECT_FALSE(recording.runs[0].grad_mode);
  const SeenTensor seen = recording.merged(siteOf(recording, "aten::mul", 0, 1));
  EXPECT_TRUE(seen.requires_grad.value);
  EXPECT_FALSE(seen.stock_grad.value);
  auto profiled = withProfileNodes(*graph, recording);
  // A 1 is a fact about the tensor; the 0 of a result is none about callers with grad mode.
  EXPECT_TRUE(lookupProfile(test::useBy(*profiled, "aten::mul", 0, 1)).requires_grad.value);
  const ProfileLookup result = lookupProfile(test::useBy(*profiled, "aten::relu"));
  EXPECT_FALSE(result.requires_grad.known());
  EXPECT_EQ(result.dtype.value, at::kFloat);
}

TEST(Recorder, SitesInsideRunningSubgraphsAreMarked) {
  auto graph = straightLine();
  graph->inputs()[0]->setType(c10::TensorType::get()->withRequiresGrad(false));
  graph->inputs()[1]->setType(c10::TensorType::get()->withRequiresGrad(true));
  auto plan = planBreaks(*graph, BreakPolicy::none());
  ASSERT_TRUE(plan.has_value());
  auto compiled = compile(graph, *plan);
  ASSERT_TRUE(compiled.has_value());
  auto stitched = compiled->stitchedGraph();
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor w = at::ones({3}).requires_grad_();
  Recorder recorder = instrumented(*stitched);
  recordRun(recorder, {x, w});
  const Recording recording = recorder.recording();
  const size_t outside = siteOf(recording, "prim::DifferentiableGraph", 0, 1);
  const size_t inside = siteOf(recording, "aten::mul", 0, 1);
  EXPECT_FALSE(recording.sites[outside].inside);
  EXPECT_TRUE(recording.sites[inside].inside);
  EXPECT_TRUE(recording.merged(outside).requires_grad.value);
  EXPECT_FALSE(recording.merged(inside).requires_grad.value);  // detached
  auto profiled = withProfileNodes(*stitched, recording);
  const ProfileLookup lookup = lookupProfile(test::useBy(*profiled, "prim::DifferentiableGraph", 0, 1));
  EXPECT_TRUE(lookup.requires_grad.known() && lookup.requires_grad.value);
}

TEST(Recorder, SubgraphsInlinedAreSeenFromOutside) {
  auto graph = test::parse(R"(
graph(%x : Tensor):
  %y : Tensor = prim::DifferentiableGraph_0(%x)
  return (%y)
with prim::DifferentiableGraph_0 = graph(%a : Tensor):
  %b : Tensor = aten::relu(%a)
  return (%b)
)");
  Recorder recorder = instrumented(*graph, {.inline_subgraphs = true});
  recordRun(recorder, {at::ones({2}).requires_grad_()});
  const Recording recording = recorder.recording();
  ASSERT_EQ(recording.sites.size(), 4u);
  const size_t inside = siteOf(recording, "aten::relu");
  EXPECT_FALSE(recording.sites[inside].inside);
  EXPECT_TRUE(recording.merged(inside).requires_grad.value);
}

TEST(Recorder, ProfileNodesAreSitesAndDoNotRun) {
  auto graph = test::parse(R"(
graph(%x : Tensor):
  %p : Tensor = prim::profile[profiled_type=Float(3)](%x)
  %y : Tensor = aten::relu(%p)
  return (%y)
)");
  Recorder recorder = instrumented(*graph);
  recordRun(recorder, {at::ones({2})});
  const Recording recording = recorder.recording();
  EXPECT_EQ(recording.merged(siteOf(recording, "prim::profile")).sizes[0].value, 2);
  auto profiled = withProfileNodes(*graph, recording);
  EXPECT_EQ(test::countProfiles(*profiled), 3u);
}

TEST(Recorder, ThreadsAndNestedRuns) {
  auto graph = straightLine();
  Recorder recorder = instrumented(*graph);
  torch::jit::Code code(recorder.graph(), "recorded");
  const auto work = [&](int64_t rows) {
    for (int i = 0; i < 50; ++i) {
      const Recorder::Run run(recorder);
      Stack stack = {at::ones({rows, 3}), at::ones({3})};
      torch::jit::InterpreterState(code).run(stack);
    }
  };
  std::thread other([&] { work(2); });
  work(5);
  other.join();
  const Recording recording = recorder.recording();
  ASSERT_EQ(recording.runs.size(), 100u);
  const size_t site = siteOf(recording, "aten::relu");
  for (const RecordedRun& run : recording.runs) {
    EXPECT_EQ(run.sites[site].times, 1u);
    EXPECT_TRUE(run.sites[site].sizes[0].known());
  }
  // A run inside another, of the same program: each has its own.
  const Recorder::Run outer(recorder);
  recordRun(recorder, {at::ones({7, 3}), at::ones({3})});
  interpret(recorder.graph(), {at::ones({8, 3}), at::ones({3})});
  const Recording after = recorder.recording();
  ASSERT_EQ(after.runs.size(), 102u);
  EXPECT_EQ(after.runs[100].sites[site].sizes[0].value, 8);
  EXPECT_EQ(after.runs[101].sites[site].sizes[0].value, 7);
}

TEST(Recorder, AnInstrumentedGraphOutlivesItsRecorder) {
  auto graph = straightLine();
  std::shared_ptr<Graph> kept = instrumented(*graph).graph();
  const Stack out = interpret(kept, {at::ones({2, 3}), at::ones({3})});
  EXPECT_TRUE(at::allclose(out[1].toTensor(), at::ones({2, 3})));
}

// Both sources, on straight-line programs: where libtorch puts a node, ours says the same.
TEST(Recorder, SaysWhatLibtorchsProfilingSays) {
  const at::Tensor w = at::ones({3}).requires_grad_();
  const std::vector<std::vector<Stack>> programs = {
      {{at::ones({2, 3}), w}},
      {{at::ones({2, 3}), w}, {at::ones({4, 3}), w}},
      {{at::ones({2, 3}), w}, {at::ones({2, 3}, at::kDouble), at::ones({3})}},
      {{at::ones({3, 2}).t(), at::ones({3})}}};
  for (const std::vector<Stack>& runs : programs) {
    auto graph = straightLine();
    torch::jit::getNumProfiledRuns() = runs.size();  // asked for when the graph is instrumented
    auto record = torch::jit::ProfilingRecord::instrumentGraph(graph);
    Recorder recorder = instrumented(*graph);
    for (const Stack& inputs : runs) {
      interpret(record->profiled_graph_, inputs);
      recordRun(recorder, inputs);
    }
    auto stock = record->profiled_graph_->copy();
    torch::jit::ProfilingRecord::removeProfileCounter(stock->block());
    auto ours = withProfileNodes(*graph, recorder.recording());
    size_t compared = 0;
    for (const auto& [user, operands] : std::vector<std::pair<std::string, size_t>>{
             {"aten::mul", 2}, {"aten::relu", 1}, {"aten::add", 2}, {"aten::sigmoid", 1}}) {
      for (size_t offset = 0; offset < operands; ++offset) {
        const Node* theirs = test::useBy(*stock, user).user->input(offset)->node();
        if (theirs->kind() != torch::jit::prim::profile) continue;
        const Node* own = test::useBy(*ours, user).user->input(offset)->node();
        ASSERT_EQ(own->kind(), torch::jit::prim::profile);
        // Field by field: symbols of sizes that vary are never equal.
        const auto a = own->ty(torch::jit::attr::profiled_type)->expect<c10::TensorType>();
        const auto b = theirs->ty(torch::jit::attr::profiled_type)->expect<c10::TensorType>();
        SCOPED_TRACE(testing::Message()
                     << user << ", operand " << offset << ": " << writeType(*a) << " " << writeType(*b));
        EXPECT_EQ(a->scalarType(), b->scalarType());
        EXPECT_EQ(a->device(), b->device());
        EXPECT_EQ(a->requiresGrad(), b->requiresGrad());
        EXPECT_EQ(a->undefined(), b->undefined());
        EXPECT_TRUE(a->sizes() == b->sizes());
        EXPECT_TRUE(a->strides() == b->strides());
        ++compared;
      }
    }
    EXPECT_GE(compared, 5u);
  }
  torch::jit::getNumProfiledRuns() = 1;
}

}  // namespace
}  // namespace faultline
