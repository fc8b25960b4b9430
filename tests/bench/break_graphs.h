// Graphs to break, of a given size, and the MLP that is trained in pieces.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/ir.h>

namespace faultline::bench {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// `nodes` differentiable ops in which no two stretches are alike, a weight every fourth op, and a value of
// long before used again now and then.
inline std::shared_ptr<Graph> mixedGraph(size_t nodes) {
  auto graph = std::make_shared<Graph>();
  auto type = c10::TensorType::createContiguous(at::kFloat, at::kCPU, {16, 16});
  Value* x = graph->addInput("x")->setType(type->withRequiresGrad(false));
  std::vector<Value*> values = {x};
  Value* one = graph->insertConstant(1);
  uint64_t state = 7;
  auto draw = [&](size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % bound);
  };
  static const c10::Symbol unary[] = {c10::aten::sin,  c10::aten::tanh, c10::aten::sigmoid,
                                      c10::aten::relu, c10::aten::neg,  c10::aten::cos};
  for (size_t i = 0; i < nodes; ++i) {
    Value* last = values.back();
    Node* node = nullptr;
    if (i % 4 == 0) {
      Value* w = graph->addInput("w" + std::to_string(i / 4))->setType(type->withRequiresGrad(true));
      node = graph->create(draw(2) == 0 ? c10::aten::mm : c10::aten::mul, {last, w});
    } else if (i % 7 == 3) {
      Value* earlier = values[values.size() - 1 - draw(std::min<size_t>(values.size(), 40))];
      node = graph->create(c10::aten::add, {last, earlier, one});
    } else {
      node = graph->create(unary[draw(6)], {last});
    }
    graph->insertNode(node);
    values.push_back(node->output());
  }
  graph->registerOutput(values.back());
  return graph;
}

// `layers` times mm and relu; batch 16.
struct Mlp {
  Mlp(size_t layers, int64_t width) {
    graph = std::make_shared<Graph>();
    auto type = c10::TensorType::createContiguous(at::kFloat, at::kCPU, {16, width});
    Value* h = graph->addInput("x")->setType(type->withRequiresGrad(false));
    auto square = c10::TensorType::createContiguous(at::kFloat, at::kCPU, {width, width});
    x = at::rand({16, width});
    for (size_t i = 0; i < layers; ++i) {
      Value* w = graph->addInput("w" + std::to_string(i))->setType(square->withRequiresGrad(true));
      h = graph->insertNode(graph->create(c10::aten::mm, {h, w}))->output();
      h = graph->insertNode(graph->create(c10::aten::relu, {h}))->output();
      weights.push_back(
          ((at::rand({width, width}) + 0.1) / (0.6 * static_cast<double>(width))).set_requires_grad(true));
    }
    graph->registerOutput(h);
    seed = at::ones({16, width});
  }

  at::Tensor eager() const {
    at::Tensor h = x;
    for (const at::Tensor& w : weights) {
      h = at::relu(at::mm(h, w));
    }
    return h;
  }

  std::shared_ptr<Graph> graph;
  at::Tensor x, seed;
  std::vector<at::Tensor> weights;
};

}  // namespace faultline::bench
