// Hooks on values inside a graph, for lanes that run it in an interpreter: the operator
// `faultline::seam(Tensor(a) x, int id) -> Tensor(a)` gives its argument back and installs hook `id` on it.
//
// An own operator, as TorchScript has no op for hooks. It is honest about aliasing, so that optimisers keep
// their hands off, and autodiff takes it for a border: a hook then sees the whole gradient.
#pragma once
#include <string>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "oracles/exec/hook_log.h"

namespace faultline {

// A hook on the result of a node.
struct SeamHook {
  HookKind kind = HookKind::Tensor;
  std::string seam;                      // what the log calls it
  torch::jit::Node* producer = nullptr;  // its first output
  HookAction action = HookAction::Log;
};

// Changes the graph: later uses of each value, block returns included, are fed through the operator. Hook i
// gets id i. A value that is no tensor, or that is made inside a block of another node, is fine; a producer
// without outputs aborts.
void insertSeamNodes(torch::jit::Graph& graph, const std::vector<SeamHook>& hooks);

// While one lives, seam nodes run by this thread install their hooks into `site`. Without one they do
// nothing.
class SeamScope {
 public:
  SeamScope(const std::vector<SeamHook>& hooks, HookSite& site);
  ~SeamScope();
  SeamScope(const SeamScope&) = delete;
  SeamScope& operator=(const SeamScope&) = delete;

 private:
  const std::vector<SeamHook>* hooks_before_;
  HookSite* site_before_;
};

}  // namespace faultline
