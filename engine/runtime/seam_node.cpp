#include "engine/runtime/seam_node.h"

#include <atomic>
#include <memory>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include "engine/support/torch_compat.h"

namespace faultline {

using torch::autograd::variable_list;

namespace {

class SeamNode : public torch::autograd::Node {
 public:
  std::string name() const override { return "SeamBackward"; }

 protected:
  variable_list apply(variable_list&& grads) override { return std::move(grads); }
};

// The last backward that went through the seam's node.
using LastTask = std::shared_ptr<std::atomic<int>>;

class NoteTask : public torch::autograd::FunctionPreHook {
 public:
  explicit NoteTask(LastTask last) : last_(std::move(last)) {}
  variable_list operator()(const variable_list& grads) override {
    *last_ = torch::autograd::get_current_graph_task_id();
    return grads;
  }

 private:
  LastTask last_;
};

}  // namespace

at::Tensor behindSeamNode(const at::Tensor& tensor) {
  at::Tensor seam;
  if (tensor.is_view()) {
    seam = at::alias(tensor);
  } else {
    auto node = compat::makeNode<SeamNode>();
    node->add_next_edge(torch::autograd::impl::gradient_edge(tensor));
    seam = tensor.tensor_data();
    torch::autograd::create_gradient_edge(seam, node);
  }
  const compat::NodePtr node = seam.grad_fn();
  auto last = std::make_shared<std::atomic<int>>(-1);
  node->add_pre_hook(std::make_unique<NoteTask>(last));
  tensor.register_hook([last, weak = compat::WeakNodePtr(node)](const at::Tensor& grad) {
    const compat::NodePtr passed = weak.lock();
    if (!passed || *last == torch::autograd::get_current_graph_task_id()) {
      return at::Tensor();
    }
    variable_list grads{grad};
    for (const auto& hook : passed->tensor_pre_hooks()) {
      grads = (*hook)(grads);
    }
    for (const auto& [input, hook] : passed->retains_grad_hooks()) {
      grads = (*hook)(grads);
    }
    return grads[0];
  });
  return seam;
}

}  // namespace faultline
