#include "oracles/exec/hook_log.h"

#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "oracles/exec/observe.h"

namespace faultline {
namespace {

using torch::autograd::variable_list;

// There is room for one such hook on a tensor: each new one carries those before it.
class LogPostAccumulate : public torch::autograd::PostAccumulateGradHook {
 public:
  LogPostAccumulate(std::shared_ptr<HookAct> act, std::function<void(const at::Tensor&)> add_another,
                    std::unique_ptr<torch::autograd::PostAccumulateGradHook> before)
      : act_(std::move(act)), add_another_(std::move(add_another)), before_(std::move(before)) {}
  void operator()(const torch::autograd::Variable& tensor) override {
    if (before_) (*before_)(tensor);
    const at::Tensor replaced = act_->fire(gradientOf(tensor));
    if (replaced.defined()) tensor.mutable_grad() = replaced;
    if (act_->doesFirst(HookAction::Register)) add_another_(tensor);
  }

 private:
  std::shared_ptr<HookAct> act_;
  std::function<void(const at::Tensor&)> add_another_;
  std::unique_ptr<torch::autograd::PostAccumulateGradHook> before_;
};

class LogNodePre : public torch::autograd::FunctionPreHook {
 public:
  LogNodePre(std::shared_ptr<HookAct> act, size_t result) : act_(std::move(act)), result_(result) {}
  variable_list operator()(const variable_list& grads) override {
    variable_list given = grads;
    const at::Tensor replaced = act_->fire(given.at(result_));
    if (replaced.defined()) given[result_] = replaced;
    return given;
  }

 private:
  std::shared_ptr<HookAct> act_;
  size_t result_;
};

class LogNodePost : public torch::autograd::FunctionPostHook {
 public:
  LogNodePost(std::shared_ptr<HookAct> act, size_t result) : act_(std::move(act)), result_(result) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    act_->fire(inputs.at(result_));
    return outputs;
  }

 private:
  std::shared_ptr<HookAct> act_;
  size_t result_;
};

// A hook on the tensor that holds it would hold itself.
using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

at::Tensor locked(const WeakTensor& weak) {
  auto impl = weak.lock();
  return impl ? at::Tensor(std::move(impl)) : at::Tensor();
}

bool isFloating(const at::Tensor& t) { return t.defined() && (t.is_floating_point() || t.is_complex()); }

// Of a small graph that has nothing to do with the case's.
at::Tensor gradientOfSquare(const at::Tensor& at) {
  const at::AutoGradMode grad_mode(true);  // hooks run without
  const at::Tensor leaf = at.detach().clone().set_requires_grad(true);
  const at::Tensor square = leaf * leaf;
  torch::autograd::backward({square}, {at::ones_like(square)});
  return leaf.grad();
}

HookTrace::Kind traceKind(HookKind kind) { return static_cast<HookTrace::Kind>(kind); }

void installTensorHook(HookKind kind, HookAction action, const std::string& on, const at::Tensor& value,
                       const std::shared_ptr<HookLog>& log, const std::shared_ptr<HookAct>& act) {
  const WeakTensor weak(value.getIntrusivePtr());
  auto id = std::make_shared<unsigned>(0);
  *id = value.register_hook([=](const at::Tensor& grad) {
    const at::Tensor replaced = act->fire(grad);
    if (action == HookAction::Register && act->doesFirst(action)) {
      installTensorHook(kind, HookAction::Log, on, locked(weak), log,
                        std::make_shared<HookAct>(log, kind, HookAction::Log, on));
    }
    if (action == HookAction::Remove && act->doesFirst(action)) {
      const unsigned own = *id;
      const at::Tensor tensor = locked(weak);
      const at::Tensor result = replaced;
      tensor.remove_hook(own);  // what this stands in is gone
      return result;
    }
    return replaced;
  });
}

}  // namespace

at::Tensor HookAct::fire(const at::Tensor& grad) {
  log_->add(traceKind(kind_), on_,
            action_ == HookAction::Backward && isFloating(grad) ? gradientOfSquare(grad) : grad);
  if (doesFirst(HookAction::Throw)) throw std::runtime_error("the hook on " + on_ + " throws");
  return action_ == HookAction::Replace && isFloating(grad) ? grad * 2 : at::Tensor();
}

bool HookAct::doesFirst(HookAction action) { return action_ == action && !std::exchange(fired_, true); }

std::shared_ptr<HookAct> HookSite::seamAct(HookKind kind, HookAction action, const std::string& seam) {
  std::shared_ptr<HookAct>& act = seam_acts[{kind, seam}];
  if (!act) act = std::make_shared<HookAct>(log, kind, action, seam);
  return act;
}

void HookLog::setPieceSource(PieceSource source) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pieces_ = std::move(source);
}

void HookLog::append(HookTrace entry) {
  entry.seq = entries_.size();
  entries_.push_back(std::move(entry));
}

void HookLog::appendPieces() {
  if (!pieces_) return;
  for (const Beginning& begun : pieces_()) {
    HookTrace entry;
    entry.kind = HookTrace::Kind::PieceBackward;
    entry.on = "piece" + std::to_string(begun.piece);
    entry.execution = begun.execution;
    append(std::move(entry));
  }
}

void HookLog::add(HookTrace::Kind kind, const std::string& on, const at::Tensor& argument) {
  HookTrace entry;
  entry.kind = kind;
  entry.on = on;
  entry.argument = observeTensor(argument, on);
  const std::lock_guard<std::mutex> lock(mutex_);
  appendPieces();
  append(std::move(entry));
}

std::vector<HookTrace> HookLog::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  appendPieces();
  return std::exchange(entries_, {});
}

void queueEnd(const std::shared_ptr<HookAct>& act, const at::Tensor& value) {
  const WeakTensor weak(value.defined() ? value.getIntrusivePtr() : at::Tensor().getIntrusivePtr());
  torch::autograd::Engine::get_default_engine().queue_callback([act, weak] {
    const at::Tensor tensor = locked(weak);
    act->fire(tensor.defined() && tensor.is_leaf() ? gradientOf(tensor) : at::Tensor());
  });
}

void installHook(HookKind kind, HookAction action, const std::string& on, const at::Tensor& value,
                 HookSite& site, std::shared_ptr<HookAct> act) {
  if (!value.defined() || !value.requires_grad()) return;
  if (!act) act = std::make_shared<HookAct>(site.log, kind, action, on);
  switch (kind) {
    case HookKind::Tensor:
      installTensorHook(kind, action, on, value, site.log, act);
      break;
    case HookKind::RetainGrad:
      value.retain_grad();
      site.retained.emplace_back(on, value);
      break;
    case HookKind::PostAccumulate:
      if (value.is_leaf()) {
        auto another = [on, log = site.log](const at::Tensor& tensor) {
          installTensorHook(HookKind::Tensor, HookAction::Log, on, tensor, log,
                            std::make_shared<HookAct>(log, HookKind::Tensor, HookAction::Log, on));
        };
        auto before = std::move(torch::autograd::impl::post_acc_grad_hooks(value));
        torch::autograd::impl::set_post_acc_grad_hooks(
            value, std::make_unique<LogPostAccumulate>(act, std::move(another), std::move(before)));
      }
      break;
    case HookKind::NodePre:
    case HookKind::NodePost: {
      const torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(value);
      if (!edge.function) break;  // made without grad mode, whatever its flag says
      if (value.is_leaf()) site.accumulators.push_back(edge.function);
      if (kind == HookKind::NodePre) {
        edge.function->add_pre_hook(std::make_unique<LogNodePre>(act, edge.input_nr));
      } else {
        edge.function->add_post_hook(std::make_unique<LogNodePost>(act, edge.input_nr));
      }
      break;
    }
    case HookKind::BackwardEnd:
      value.register_hook([act, weak = WeakTensor(value.getIntrusivePtr())](const at::Tensor&) {
        queueEnd(act, locked(weak));
        return at::Tensor();
      });
      break;
  }
}

void logRetained(HookSite& site) {
  for (auto& [on, value] : site.retained) {
    if (value.grad().defined()) site.log->add(HookTrace::Kind::RetainGrad, on, value.grad());
  }
  forgetRetained(site);
}

void forgetRetained(HookSite& site) {
  for (auto& [on, value] : site.retained) value.mutable_grad() = at::Tensor();
}

}  // namespace faultline
