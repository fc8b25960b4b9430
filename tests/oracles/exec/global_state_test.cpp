#include "oracles/exec/global_state.h"

#include <ATen/Context.h>
#include <ATen/ops/rand.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/passes/pass_manager.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/graph_executor_impl.h>

namespace faultline {
namespace {

using testing::StartsWith;

// Makes the change, and gives what the comparison says about it; everything is as it was afterwards.
template <class Change>
std::string noticed(Change change) {
  const GlobalState before = captureGlobalState();
  change();
  const std::string difference = describeGlobalStateDifference(before, captureGlobalState());
  restoreGlobalState(before);
  EXPECT_EQ(describeGlobalStateDifference(before, captureGlobalState()), "");
  return difference;
}

TEST(GlobalState, NothingChangedIsNoDifference) {
  EXPECT_EQ(noticed([] {}), "");
}

TEST(GlobalState, NamesTheField) {
  EXPECT_THAT(noticed([] { at::rand({1}); }), StartsWith("generator"));
  EXPECT_THAT(noticed([] { seedGenerator(3); }), StartsWith("generator"));
  EXPECT_EQ(noticed([] { c10::GradMode::set_enabled(false); }), "grad_mode: true, now false");
  EXPECT_THAT(noticed([] { c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kDouble)); }),
              StartsWith("default_dtype"));
  EXPECT_THAT(noticed([] { at::globalContext().setDeterministicAlgorithms(true, false); }),
              StartsWith("deterministic_algorithms"));
  EXPECT_THAT(noticed([] { torch::jit::getProfilingMode() = false; }), StartsWith("profiling_mode"));
  EXPECT_THAT(noticed([] { torch::jit::getNumProfiledRuns() = 5; }), StartsWith("profiled_runs"));
  EXPECT_THAT(noticed([] { torch::jit::setGraphExecutorOptimize(false); }), StartsWith("optimize_graphs"));
  EXPECT_THAT(noticed([] { torch::jit::debugSetAutodiffSubgraphInlining(false); }),
              StartsWith("autodiff_subgraph_inlining"));
  if (at::globalContext().setFlushDenormal(false)) {
    EXPECT_THAT(noticed([] { at::globalContext().setFlushDenormal(true); }), StartsWith("flushes_denormals"));
  }
}

TEST(GlobalStateDeathTest, ALeakAbortsWithItsName) {
  EXPECT_DEATH(
      {
        const GlobalStateCheck check;
        torch::jit::getExecutorMode() = false;
        check.check("lane leaky");
      },
      "lane leaky left global state changed: executor_mode");
  EXPECT_DEATH(
      {
        const GlobalStateCheck check;
        torch::jit::registerPostPass([](std::shared_ptr<torch::jit::Graph>&) {});
        check.check("lane leaky");
      },
      "registered_post_passes: 0, now 1");
}

}  // namespace
}  // namespace faultline
