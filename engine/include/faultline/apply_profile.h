// What profiles are good for: a graph whose gradients that nobody needs are left out ahead of time, because a
// profiling run saw that their tensors do not require grad.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faultline/graph_break.h"

namespace faultline {

// A tensor that comes into ops that are differentiated together.
struct ConsumedInput {
  std::string op;     // its first user among them
  size_t offset = 0;  // which of that op's inputs
  std::string why;    // of one that is not known
};

struct ApplyReport {
  size_t parts = 0;   // runs of ops that share an autograd node
  size_t known = 0;   // inputs of theirs whose requires_grad was retrieved
  size_t pruned = 0;  // of these: would have got a gradient without the profile, and get none
  // Against the same parts differentiated without the profile.
  int64_t backward_nodes_saved = 0;    // ops of backward graphs
  int64_t captured_saved = 0;          // tensors that are kept for the backward
  int64_t captured_bytes_saved = 0;    // of these, where the profile knows how large they are
  int64_t captured_unsized = 0;        // of these, the others
  std::vector<ConsumedInput> unknown;  // taken to require grad, as without a profile
};

// What a caller knows and no profile says. Asked in every run, with the graph's inputs, before anything of it
// runs; must not change them, and is called by any number of threads at once. What it throws comes out of
// run.
struct ApplyGuard {
  std::string name;
  std::function<bool(const torch::jit::Stack& inputs)> holds;
  // Values of the graph or a nested block by debug name, without '%', and what may be assumed of them while
  // it holds, in place of what their profile nodes say: as by setProfile.
  std::vector<std::pair<std::string, c10::TensorTypePtr>> assume;
};

struct ApplyOptions {
  BreakPolicy policy = BreakPolicy::none();
  std::vector<ApplyGuard> guards = {};  // of those that hold, the first decides
};

// The graph once more, specialised on a guard's assumptions too.
struct GuardedProfile {
  ApplyGuard guard;
  CompiledGraph compiled;
  ApplyReport report;
};

class AppliedProfile {
 public:
  // As CompiledGraph::run. Each part looks at the grad mode, the dtypes and the flags of its inputs; where
  // these are not what the profile said it runs as written, with eager autograd: wrong or stale profiles, and
  // wrong assumptions, cost time, never results. Inputs of which the profile said nothing may have either
  // flag: the part is differentiated for what comes, on its first run. Ops that take lists of tensors always
  // run as written. Threads: any number at once.
  void run(torch::jit::Stack& stack) const;
  // Of what runs while no guard holds.
  const ApplyReport& report() const { return report_; }
  const CompiledGraph& compiled() const { return compiled_; }
  const std::vector<GuardedProfile>& guarded() const { return guarded_; }  // as the options had the guards

 private:
  friend Result<AppliedProfile> applyProfile(std::shared_ptr<Graph>, const ApplyOptions&);
  AppliedProfile(CompiledGraph compiled, ApplyReport report, std::vector<GuardedProfile> guarded)
      : compiled_(std::move(compiled)), report_(std::move(report)), guarded_(std::move(guarded)) {}

  CompiledGraph compiled_;
  ApplyReport report_;
  std::vector<GuardedProfile> guarded_;
};

// Specialises `graph` on what its profile nodes say, conditional answers included, for they are guarded.
// Does not change it; propagated or not makes no difference. Refuses what planBreaks and compile refuse, a
// guard without a predicate, and an assumption of a value that is not there or whose type excludes it.
Result<AppliedProfile> applyProfile(std::shared_ptr<Graph> graph, const ApplyOptions& options = {});

}  // namespace faultline
