// Executes nodes one by one and keeps every value, so that a graph can be run while it is being built.
//
// Unlike the interpreter it needs no complete graph, drops nothing, and tells an observer what profile nodes
// see.
#pragma once
#include <functional>
#include <unordered_map>

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

namespace faultline {

class Execution {
 public:
  // Called after each node, under the grad mode of the place; its inputs and outputs can be asked for.
  std::function<void(const torch::jit::Node& node, const Execution& execution)> observer;

  void clear() { values_.clear(); }
  void set(const torch::jit::Value* value, c10::IValue to) { values_[value] = std::move(to); }
  const c10::IValue& get(const torch::jit::Value* value) const;  // aborts where nothing is known

  // Saves looking an operator up by its arguments' types.
  void setOperation(const torch::jit::Node* node, torch::jit::Operation operation);
  // Before a node and what is in it are destroyed: addresses are used again.
  void forget(const torch::jit::Node* node);

  // Throw what the op throws; results of nodes behind it are then not set. Subgraphs run as if inlined.
  void run(const torch::jit::Node* node);
  void run(const torch::jit::Block* block);

 private:
  void dispatch(const torch::jit::Node* node);
  void runIf(const torch::jit::Node* node);
  void runLoop(const torch::jit::Node* node);
  void runSubgraph(const torch::jit::Node* node);
  void runOperation(const torch::jit::Node* node);

  std::unordered_map<const torch::jit::Value*, c10::IValue> values_;
  std::unordered_map<const torch::jit::Node*, torch::jit::Operation> operations_;
};

}  // namespace faultline
