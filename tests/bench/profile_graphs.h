// Profiled graphs of a given size for benchmarks: the shapes that could make an analysis slow.
#pragma once
#include <memory>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline::bench {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// Of all blocks and subgraphs.
inline std::vector<const Node*> nodesOf(const Graph& graph) {
  std::vector<const Node*> nodes;
  std::vector<const Block*> stack = {graph.block()};
  while (!stack.empty()) {
    const Block* block = stack.back();
    stack.pop_back();
    for (const Node* node : block->nodes()) {
      nodes.push_back(node);
      for (const Block* inner : node->blocks()) stack.push_back(inner);
      if (node->hasAttribute(torch::jit::attr::Subgraph))
        stack.push_back(node->g(torch::jit::attr::Subgraph)->block());
    }
  }
  return nodes;
}

inline size_t countNodes(const Graph& graph) { return nodesOf(graph).size(); }

class GraphMaker {
 public:
  explicit GraphMaker(size_t nodes)
      : graph_(std::make_shared<Graph>()), wanted_(nodes), block_(graph_->block()) {}

  // One block: each value observed once and read by two ops, once past its profile node.
  std::shared_ptr<Graph> straight() {
    Value* x = graph_->addInput("x");
    while (more()) {
      Value* y = op(torch::jit::aten::relu, {observe(x)});
      x = op(torch::jit::aten::mul, {x, y});
    }
    graph_->registerOutput(x);
    return graph_;
  }

  // Ifs in Ifs, `kDepth` deep and then from the top again: each reads a tensor of the outermost block, and
  // hands out a join of its arms.
  std::shared_ptr<Graph> nested() {
    Value* x = graph_->addInput("x");
    Value* condition = graph_->addInput("c")->setType(c10::BoolType::get());
    x = observe(x)->node()->input();
    while (more()) {
      std::vector<std::pair<Node*, Value*>> open;
      while (more() && open.size() < kDepth) {
        Node* node = graph_->create(torch::jit::prim::If, {condition}, 1);
        insert(node);
        block_ = node->addBlock();
        open.emplace_back(node, op(torch::jit::aten::sin, {x}));
        observe(open.back().second);
      }
      Value* result = nullptr;
      for (size_t i = open.size(); i-- > 0;) {
        const auto [node, own] = open[i];
        block_->registerOutput(result == nullptr ? own : op(torch::jit::aten::mul, {own, result}));
        block_ = node->addBlock();
        block_->registerOutput(observe(op(torch::jit::aten::cos, {x})));
        block_ = node->owningBlock();
        result = node->output();
      }
      x = result;
    }
    graph_->registerOutput(x);
    return graph_;
  }

  // Differentiable subgraphs of eight ops; profile nodes outside, at the inputs.
  std::shared_ptr<Graph> subgraphs() {
    Value* x = graph_->addInput("x");
    Value* w = graph_->addInput("w");
    observe(w);
    while (more()) {
      Node* call = graph_->create(torch::jit::prim::DifferentiableGraph, {observe(x), w}, 1);
      auto body = std::make_shared<Graph>();
      Value* inner = body->addInput("x");
      Value* weight = body->addInput("w");
      for (int i = 0; i < 8; ++i) {
        inner = body->insertNode(body->create(torch::jit::aten::mul, {inner, weight}, 1))->output();
        ++made_;
      }
      body->registerOutput(inner);
      call->g_(torch::jit::attr::Subgraph, body);
      insert(call);
      x = call->output();
    }
    graph_->registerOutput(x);
    return graph_;
  }

  // Views of one tensor, each observed, written into, and read again beside its base.
  std::shared_ptr<Graph> aliases() {
    Value* base = op(torch::jit::aten::neg, {graph_->addInput("x")});
    Value* other = graph_->addInput("o");
    observe(base);
    observe(other);
    while (more()) {
      Value* view = op(torch::jit::aten::t, {base});
      observe(view);
      op(torch::jit::aten::mul_, {view, other});
      op(torch::jit::aten::mul, {view, base});
    }
    graph_->registerOutput(base);
    return graph_;
  }

 private:
  static constexpr size_t kDepth = 1000;  // AliasDb, the other side, recurses

  bool more() const { return made_ < wanted_; }

  void insert(Node* node) {
    node->insertBefore(block_->return_node());
    ++made_;
  }

  Value* op(c10::Symbol kind, std::vector<Value*> inputs) {
    Node* node = graph_->create(kind, inputs, 1);
    insert(node);
    return node->output();
  }

  Value* observe(Value* value) {
    Value* seen = op(torch::jit::prim::profile, {value});
    // Of its own, as in a recorded graph.
    const int64_t width = 2 + static_cast<int64_t>(made_ % 4);
    seen->node()->ty_(
        torch::jit::attr::profiled_type,
        c10::TensorType::createContiguous(at::kFloat, at::kCPU, {width, 4})->withRequiresGrad(true));
    return seen;
  }

  std::shared_ptr<Graph> graph_;
  size_t wanted_;
  size_t made_ = 0;
  Block* block_;
};

struct Shape {
  const char* name;
  std::shared_ptr<Graph> (GraphMaker::*make)();
};

inline constexpr Shape kShapes[] = {{"straight", &GraphMaker::straight},
                                    {"nested", &GraphMaker::nested},
                                    {"subgraphs", &GraphMaker::subgraphs},
                                    {"aliases", &GraphMaker::aliases}};

}  // namespace faultline::bench
