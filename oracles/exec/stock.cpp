// libtorch's profiling executor as users get it: run 1 profiles, run 2 runs what was optimised from that.
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "oracles/exec/execute.h"
#include "oracles/exec/lanes.h"
#include "oracles/exec/profiling_modes.h"

namespace faultline {
namespace {

class StockProgram : public LaneProgram {
 public:
  explicit StockProgram(const std::shared_ptr<torch::jit::Graph>& graph) : executor_(graph, "faultline") {}

  void run(torch::jit::Stack& stack) override { executor_.run(stack); }

  // Now, since after a backward the last executed graph is the backward's.
  void afterForward(HookSite&) override { optimized_ = torch::jit::lastExecutedOptimizedGraph(); }

  void describe(Trace& trace) override {
    if (optimized_) trace.graph_text = optimized_->toString(/*print_source_locations=*/false);
  }

 private:
  ProfilingModes modes_;
  torch::jit::GraphExecutor executor_;
  std::shared_ptr<torch::jit::Graph> optimized_;
};

class StockLane : public ProgramLane {
 public:
  StockLane() : ProgramLane("stock") {}

 protected:
  std::unique_ptr<LaneProgram> prepare(const Case&, PreparedCase& prepared, Trace&) override {
    insertSeamNodes(*prepared.graph, prepared.seam_hooks);
    return std::make_unique<StockProgram>(prepared.graph);
  }
};

}  // namespace

std::unique_ptr<Lane> makeStockLane() { return std::make_unique<StockLane>(); }

}  // namespace faultline
