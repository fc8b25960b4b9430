// `break --exec`: one forward and backward of a compiled graph with a hook on every parameter, next to the
// same in eager PyTorch.
#pragma once
#include <string>
#include <vector>

#include "faultline/error.h"
#include "faultline/graph_break.h"
#include "generators/case/case.h"

namespace faultline::cli {

// A number of the broken graph against eager's: equal within `tolerance`, which is what tolerances.def
// grants.
struct Agreement {
  double broken = 0, eager = 0, tolerance = 0;
  bool equal = true;
};

// A hook that fired with a piece that the plan does not say it comes with, and why that is as promised.
struct HookElsewhere {
  enum class Why { DidNotRun, NoGradient, HandedOn, Unplanned } why;
  std::string name;
};

// The hooks of one piece: which the plan says come with it, and which did, in the order they fired.
struct PieceHooks {
  int piece = 0;
  std::vector<std::string> predicted, observed;
  std::vector<HookElsewhere> elsewhere;  // of the observed
  int64_t bytes_ready = 0;               // of gradients, when the last of them had fired
  int64_t eager_bytes_ready = 0;         // in eager, when as many hooks had fired
  bool as_predicted = true;
};

struct BreakRun {
  std::string error;  // what the broken graph threw, where eager did not; the rest is then as far as it came
  bool backward = false;                      // something required grad
  Agreement loss;                             // the sum of the means of all floating-point outputs
  uint64_t compared = 0;                      // numbers in outputs and gradients
  std::vector<std::string> differences;       // of outputs and gradients, sentences
  std::vector<std::string> hooked;            // tensors with a hook, in order of inputs
  std::vector<std::string> without_gradient;  // of these: no gradient came to them
  std::vector<std::string> broken_promises;   // hooks that fired too often, too seldom, too early or too late
  std::vector<TimelineEvent> events;
  uint64_t forward_ended = 0;  // before the event of this seq: the program may run backwards of its own
  uint64_t own_hooks = 0;      // that fired in these
  std::vector<PieceHooks> hook_order;  // in the order pieces ran backward
  bool good() const { return error.empty() && loss.equal && differences.empty() && broken_promises.empty(); }
};

// `graph` is what `compiled` was made from, unchanged; the inputs are those of the case's first run, made
// afresh for either side. Refuses inputs that cannot be made here, and a program that eager PyTorch throws
// on.
Result<BreakRun> runBroken(const CompiledGraph& compiled, const BreakPlan& plan,
                           const std::shared_ptr<torch::jit::Graph>& graph, const Case& c);

}  // namespace faultline::cli
