// The MLP in autograd nodes written by hand, with no more in them than the kernels: what the autograd engine
// itself takes for a node per piece. Nothing that runs a piece per node can cost less.
#pragma once
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "engine/support/torch_compat.h"
#include "tests/bench/break_graphs.h"

namespace faultline::bench {

struct HandWrittenNode : torch::autograd::Node {
  std::vector<at::Tensor> activations, weights;  // one activation more: what comes in
  bool input_requires_grad = false;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    torch::autograd::variable_list result(weights.size() + 1);
    at::Tensor grad = std::move(grads[0]);
    for (size_t k = weights.size(); k-- > 0;) {
      grad = at::threshold_backward(grad, activations[k + 1], 0);
      result[k + 1] = at::mm(activations[k].t(), grad);
      if (k > 0 || input_requires_grad) grad = at::mm(grad, weights[k].t());
    }
    if (input_requires_grad) result[0] = std::move(grad);
    return result;
  }
  std::string name() const override { return "HandWritten"; }
};

// Layers `first` up to `end`.
inline at::Tensor handWrittenPiece(const Mlp& mlp, const at::Tensor& x, size_t first, size_t end) {
  auto node = compat::makeNode<HandWrittenNode>();
  torch::autograd::edge_list edges;
  node->input_requires_grad = x.requires_grad();
  edges.push_back(x.requires_grad() ? torch::autograd::impl::gradient_edge(x) : torch::autograd::Edge());
  at::Tensor h;
  {
    const at::NoGradGuard no_grad;
    h = x.detach();
    node->activations.push_back(h);
    for (size_t i = first; i < end; ++i) {
      h = at::relu(at::mm(h, mlp.weights[i]));
      node->activations.push_back(h);
      node->weights.push_back(mlp.weights[i]);
      edges.push_back(torch::autograd::impl::gradient_edge(mlp.weights[i]));
    }
    h = h.detach();  // what it keeps itself must not lead back to it
  }
  node->set_next_edges(std::move(edges));
  torch::autograd::create_gradient_edge(h, node);
  return h;
}

inline at::Tensor handWritten(const Mlp& mlp, size_t layers_per_piece) {
  at::Tensor h = mlp.x;
  for (size_t first = 0; first < mlp.weights.size(); first += layers_per_piece) {
    h = handWrittenPiece(mlp, h, first, first + layers_per_piece);
  }
  return h;
}

}  // namespace faultline::bench
