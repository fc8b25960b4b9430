// What triggers ask about a case: memory, writes and gradients in its graph, with subgraphs inlined and
// profile nodes stripped. Approximate where the graph alone cannot tell, and then towards yes.
#pragma once
#include <memory>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "generators/case/case.h"

namespace faultline {

class CaseFacts {
 public:
  explicit CaseFacts(const Case& c);

  // Those of If and Loop bodies included, in the order they are written.
  const std::vector<torch::jit::Node*>& nodes() const { return nodes_; }

  // The values this one is the same tensor as, a view of, or a container of; one step.
  std::vector<torch::jit::Value*> memoryOf(const torch::jit::Value* value) const;
  // The arguments that the op writes into.
  std::vector<torch::jit::Value*> writtenBy(torch::jit::Node* node) const;
  // Whether something that is written is, through any chain of memoryOf, a result of this node.
  bool isWrittenThrough(const torch::jit::Node* node) const { return written_through_.count(node) != 0; }
  // Whether a result of this node is, likewise, an output of the graph.
  bool isReturned(const torch::jit::Node* node) const { return returned_.count(node) != 0; }
  // Whether an output, a write or a decision depends on a result of this node.
  bool isUsed(const torch::jit::Node* node) const { return used_.count(node) != 0; }
  // Whether the value depends on an input that requires grad in some run.
  bool mayNeedGrad(const torch::jit::Value* value) const { return need_grad_.count(value) != 0; }
  bool anyInputNeedsGrad(const torch::jit::Node* node) const;

 private:
  void follow(std::vector<torch::jit::Value*> values,
              std::unordered_set<const torch::jit::Node*>& nodes) const;
  void followWrites();
  void followUses();
  void followGradients(const Case& c);
  bool followGradients(torch::jit::Node* node);

  std::shared_ptr<torch::jit::Graph> graph_;
  std::vector<torch::jit::Node*> nodes_;
  std::unordered_set<const torch::jit::Node*> written_through_, returned_, used_;
  std::unordered_set<const torch::jit::Value*> need_grad_;
};

bool isOp(const torch::jit::Node* node, std::string_view name);  // "aten::mul", whatever the overload

}  // namespace faultline
