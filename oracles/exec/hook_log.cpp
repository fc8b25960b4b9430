#include "oracles/exec/hook_log.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "oracles/exec/observe.h"

namespace faultline {
namespace {

// There is room for one such hook on a tensor: each new one carries those before it.
class LogPostAccumulate : public torch::autograd::PostAccumulateGradHook {
 public:
  LogPostAccumulate(std::shared_ptr<HookLog> log, std::string on,
                    std::unique_ptr<torch::autograd::PostAccumulateGradHook> before)
      : log_(std::move(log)), on_(std::move(on)), before_(std::move(before)) {}
  void operator()(const torch::autograd::Variable& tensor) override {
    if (before_) (*before_)(tensor);
    log_->add(HookTrace::Kind::PostAccumulate, on_, tensor.grad());
  }

 private:
  std::shared_ptr<HookLog> log_;
  std::string on_;
  std::unique_ptr<torch::autograd::PostAccumulateGradHook> before_;
};

}  // namespace

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
  for (const int piece : pieces_()) {
    HookTrace entry;
    entry.kind = HookTrace::Kind::PieceBackward;
    entry.on = "piece" + std::to_string(piece);
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

void installHook(HookKind kind, const std::string& on, const at::Tensor& value, HookSite& site) {
  if (!value.defined() || !value.requires_grad()) return;
  const std::shared_ptr<HookLog> log = site.log;
  switch (kind) {
    case HookKind::Tensor:
      value.register_hook([log, on](const at::Tensor& grad) { log->add(HookTrace::Kind::Tensor, on, grad); });
      break;
    case HookKind::RetainGrad:
      value.retain_grad();
      site.retained.emplace_back(on, value);
      break;
    case HookKind::PostAccumulate:
      if (value.is_leaf()) {
        auto before = std::move(torch::autograd::impl::post_acc_grad_hooks(value));
        torch::autograd::impl::set_post_acc_grad_hooks(
            value, std::make_unique<LogPostAccumulate>(log, on, std::move(before)));
      }
      break;
  }
}

void logRetained(HookSite& site) {
  for (auto& [on, value] : site.retained) {
    if (value.grad().defined()) site.log->add(HookTrace::Kind::RetainGrad, on, value.grad());
  }
  for (auto& [on, value] : site.retained) value.mutable_grad() = at::Tensor();
}

}  // namespace faultline
