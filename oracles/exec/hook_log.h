// What fired during a phase, in order. Shared by all hooks of a run; thread-safe, as backward may use other
// threads.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "generators/case/case.h"
#include "oracles/trace.h"

namespace faultline {

class HookLog {
 public:
  // Gives the pieces whose backward began since it was last asked. Asked before each entry and by `take`, so
  // that beginnings stand in the log where they happened.
  using PieceSource = std::function<std::vector<int>()>;

  void setPieceSource(PieceSource source);
  void add(HookTrace::Kind kind, const std::string& on, const at::Tensor& argument);
  std::vector<HookTrace> take();  // what came since the last call

 private:
  void append(HookTrace entry);
  void appendPieces();

  std::mutex mutex_;
  std::vector<HookTrace> entries_;
  PieceSource pieces_;
};

// Where the hooks of one run report to.
struct HookSite {
  std::shared_ptr<HookLog> log = std::make_shared<HookLog>();
  // Values under retain_grad: what they hold is logged after the phase, since the retaining is itself the
  // hook.
  std::vector<std::pair<std::string, at::Tensor>> retained;
};

// Installs hooks of the case on a value. Values without requires_grad carry none, in every lane alike;
// PostAccumulate is for leaves only.
void installHook(HookKind kind, const std::string& on, const at::Tensor& value, HookSite& site);

// Logs the gradients that retained values hold, and takes them away.
void logRetained(HookSite& site);

}  // namespace faultline
