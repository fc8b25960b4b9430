// An autograd node that does nothing but stand before the producer of a seam.
#pragma once
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "engine/support/torch_compat.h"

namespace faultline {

class SeamNode : public torch::autograd::Node {
 public:
  // `tensor` under another node: the same values, storage and version counter. What eager takes for a view
  // stays one.
  static at::Tensor behind(const at::Tensor& tensor) {
    if (tensor.is_view()) {
      return at::alias(tensor);
    }
    auto node = compat::makeNode<SeamNode>();
    node->add_next_edge(torch::autograd::impl::gradient_edge(tensor));
    at::Tensor result = tensor.tensor_data();
    torch::autograd::create_gradient_edge(result, node);
    return result;
  }

  std::string name() const override { return "SeamBackward"; }

 protected:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    return std::move(grads);
  }
};

}  // namespace faultline
