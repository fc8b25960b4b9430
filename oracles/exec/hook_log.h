// What fired during a phase, in order. Shared by all hooks of a run; thread-safe, as backward may use other
// threads.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/support/torch_compat.h"
#include "generators/case/case.h"
#include "oracles/trace.h"

namespace faultline {

class HookLog {
 public:
  // Gives the pieces whose backward began since it was last asked. Asked before each entry and by `take`, so
  // that beginnings stand in the log where they happened.
  struct Beginning {
    int piece, execution;
  };
  using PieceSource = std::function<std::vector<Beginning>()>;

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

// What a hook does when it fires: it is logged, and acts.
class HookAct {
 public:
  HookAct(std::shared_ptr<HookLog> log, HookKind kind, HookAction action, std::string on)
      : log_(std::move(log)), kind_(kind), action_(action), on_(std::move(on)) {}
  // What is to stand in the gradient's place; undefined: nothing else. Throws if that is the act.
  at::Tensor fire(const at::Tensor& grad);
  // True once, where the act is that one.
  bool doesFirst(HookAction action);

 private:
  std::shared_ptr<HookLog> log_;
  HookKind kind_;
  HookAction action_;
  std::string on_;
  bool fired_ = false;
};

// Where the hooks of one run report to.
struct HookSite {
  std::shared_ptr<HookLog> log = std::make_shared<HookLog>();
  // Values under retain_grad: what they hold is logged after the phase, since the retaining is itself the
  // hook.
  std::vector<std::pair<std::string, at::Tensor>> retained;
  // Gradient accumulators, which live no longer than someone holds them.
  std::vector<compat::NodePtr> accumulators;
  // A hook on a seam is one hook, however many values of one run it sits on.
  std::map<std::pair<HookKind, std::string>, std::shared_ptr<HookAct>> seam_acts;
  std::shared_ptr<HookAct> seamAct(HookKind kind, HookAction action, const std::string& seam);
  std::vector<int> executed;  // RunTrace::executed
};

// Installs hooks of the case on a value. Values without requires_grad carry none, in every lane alike;
// PostAccumulate is for leaves only. `act`: shared with others; nullptr: of its own.
void installHook(HookKind kind, HookAction action, const std::string& on, const at::Tensor& value,
                 HookSite& site, std::shared_ptr<HookAct> act = nullptr);

// Asks for a call at the end of the backward that runs now.
void queueEnd(const std::shared_ptr<HookAct>& act, const at::Tensor& value);

// Logs the gradients that retained values hold, and takes them away.
void logRetained(HookSite& site);
void forgetRetained(HookSite& site);

}  // namespace faultline
