// What all lanes share: the runs of a case, their phases, hooks, streams of random numbers, and the trace of
// it all.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include <ATen/core/stack.h>

#include "oracles/exec/hook_log.h"
#include "oracles/exec/prepare.h"
#include "oracles/lane.h"

namespace faultline {

// What a lane makes of a case's graph.
class LaneProgram {
 public:
  virtual ~LaneProgram() = default;
  // Replaces the inputs on the stack by the outputs; throws what the graph throws. Runs inside a SeamScope
  // for the seam hooks of the prepared case.
  virtual void run(torch::jit::Stack& stack) = 0;
  // After a forward without error, before its backward phases: for hooks on what only exists now.
  virtual void afterForward(HookSite&) {}
  // Into the trace after the last run: graph text, pieces.
  virtual void describe(Trace&) {}
};

// Every lane runs a case this often at least, the last run repeated: a profiling executor profiles in run 1,
// optimises in run 2, and some failures need a run after that.
constexpr size_t kLeastRuns = 3;

// A lane that runs a LaneProgram. Owns the global state around it: caller's modes and the generator are set
// before each phase and restored after; whatever else differs at the end aborts with the field's name.
class ProgramLane : public Lane {
 public:
  explicit ProgramLane(std::string name) : name_(std::move(name)) {}
  Trace execute(const Case& c, uint64_t seed) final;

 protected:
  // May set Trace::skip and return nullptr. Exceptions count as thrown by every forward.
  virtual std::unique_ptr<LaneProgram> prepare(const Case& c, PreparedCase& prepared, Trace& trace) = 0;

 private:
  std::string name_;
};

// Called before each phase that this thread executes: run from 0, "forward", "backward0", … Returns the one
// before.
using StepObserver = std::function<void(int run, const std::string& phase)>;
StepObserver setStepObserver(StepObserver observer);

// Seeds of the streams, from the case's seed alone: the same in every lane. Inputs with equal specs have
// equal values in every run, so that runs can be told apart by what is flipped between them.
uint64_t inputSeed(uint64_t seed, size_t input);
uint64_t phaseSeed(uint64_t seed, size_t run, size_t phase);
// What output or gradient `index` of a run is weighted with in a backward.
at::Tensor weightsFor(const at::Tensor& like, uint64_t seed, size_t index);

}  // namespace faultline
