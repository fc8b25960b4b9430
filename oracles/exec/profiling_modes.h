// libtorch's executor made the profiling one while this lives.
#pragma once
#include <cstddef>

#include <torch/csrc/jit/runtime/graph_executor.h>

namespace faultline {

// The modes that make it the profiling executor, whatever the program at hand has set.
class ProfilingModes {
 public:
  ProfilingModes()
      : profiling_(torch::jit::getProfilingMode()),
        executor_(torch::jit::getExecutorMode()),
        runs_(torch::jit::getNumProfiledRuns()) {
    set(true, true, 1);
  }
  ~ProfilingModes() { set(profiling_, executor_, runs_); }
  ProfilingModes(const ProfilingModes&) = delete;
  ProfilingModes& operator=(const ProfilingModes&) = delete;

 private:
  static void set(bool profiling, bool executor, size_t runs) {
    torch::jit::getProfilingMode() = profiling;
    torch::jit::getExecutorMode() = executor;
    torch::jit::getNumProfiledRuns() = runs;
  }
  bool profiling_, executor_;
  size_t runs_;
};

}  // namespace faultline
