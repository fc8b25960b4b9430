// A program that is being built: its graph, its inputs, the real values of everything in scope.
//
// Invariant between calls: every node in front of the insertion point has been executed, in order, on fresh
// inputs (arms not yet closed as if they were taken, loop bodies as in their first trip). An op that throws
// leaves no node and no effect.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "generators/generate/execution.h"
#include "generators/generate/generate.h"
#include "generators/generate/inputs.h"
#include "generators/generate/swarm.h"
#include "generators/ops/op_row.h"
#include "generators/ops/operand.h"

namespace faultline {

inline bool isGraphInput(const torch::jit::Value* value) {
  return value->node()->kind() == torch::jit::prim::Param &&
         value->node()->owningBlock()->owningNode() == nullptr;
}

class ProgramBuilder final : public OperandSource {
 public:
  ProgramBuilder(Choices& choices, uint64_t seed, const Swarm& swarm, const GenerateOptions& options);

  // OperandSource
  Choices& choices() override { return choices_; }
  const std::vector<Operand>& tensors() const override { return live_; }
  std::vector<torch::jit::Value*> integers() const override { return integers_; }
  torch::jit::Value* constant(const c10::IValue& value) override;
  std::optional<size_t> make(const TensorWish& wish) override;
  torch::jit::Value* list(const std::vector<torch::jit::Value*>& elements) override;
  int64_t drawSize() override { return style_.palette[choices_.below(style_.palette.size())]; }
  bool broadcasts() const override { return swarm_.has(Feature::broadcasting); }
  const torch::jit::Value* preferred() const override { return preferred_; }

  // Adds one op of this row; nullptr: operands are not to be had, or it threw, or its result is too large or
  // too wild. Otherwise its first result that is a tensor (a list's first element).
  torch::jit::Value* tryOp(const OpRow& row);
  void prefer(const torch::jit::Value* value) { preferred_ = value; }

  // Adds and executes a node that cannot throw: containers, casts, grad mode. Results are not put in scope.
  torch::jit::Node* add(c10::Symbol kind, const std::vector<torch::jit::Value*>& inputs,
                        const std::vector<c10::TypePtr>& results);
  void bring(torch::jit::Value* tensor, const Range& range);  // puts a result in scope
  void bringInteger(torch::jit::Value* integer) { integers_.push_back(integer); }
  void markUsed(const torch::jit::Value* value);
  void refresh();  // metadata of what is in scope, after a change of the grad mode

  torch::jit::Value* addInput(const InputSpec& spec);          // tensors and shared tensors come into scope
  torch::jit::Value* addOptionalInput(const InputSpec& spec);  // of type Tensor?; while building it is there
  bool roomForInput() const;
  const InputStyle& style() const { return style_; }

  // A node with blocks under construction. Everything between is built in `block` of `node`.
  struct Scope {
    size_t live = 0, integers = 0;
  };
  Scope open(torch::jit::Node* node, torch::jit::Block* block);
  void openNext(torch::jit::Block* block);  // the next block of the innermost open node, from its beginning
  // The operands in scope as the block ends; the scope is then as it was at `scope`, plus new graph inputs.
  std::vector<Operand> leave(const Scope& scope);
  void close();                          // the innermost node is complete; not yet executed
  bool execute(torch::jit::Node* node);  // from the start of the graph; false: it threw, or spoiled a
                                         // gradient: node is gone

  torch::jit::Graph& graph() { return *graph_; }
  torch::jit::Block* block();  // where nodes go
  size_t nodes() const;        // as they will be when it is finished, constants not counted
  const Swarm& swarm() const { return swarm_; }
  const GenerateOptions& options() const { return options_; }
  const c10::IValue& valueOf(const torch::jit::Value* value) const { return execution_.get(value); }
  at::Tensor tensorOf(const torch::jit::Value* value) const { return valueOf(value).toTensor(); }
  size_t depth() const { return open_.size(); }

  // What is built, without constants nobody uses; the program must not be used afterwards.
  Case finish(const std::vector<torch::jit::Value*>& returns);

 private:
  struct Open {
    torch::jit::Node* node;
    torch::jit::Block* block;
  };
  bool fitsLimits(const torch::jit::Node* node) const;
  bool executeRow(const OpRow& row, torch::jit::Node* node);
  torch::jit::Value* bringResults(const OpRow& row, torch::jit::Node* node, const Range& range);
  void spoilRanges(const torch::jit::Value* target, const Range& range);
  bool backwardRuns() const;  // or throws, because a tensor that autograd keeps was written
  void destroy(torch::jit::Node* node);
  void replay();
  void replay(const torch::jit::Block* block, size_t depth);
  void bindInputs();
  void completeOpenNodes(bool complete);
  Operand describe(torch::jit::Value* value, const Range& range) const;
  bool isWritable(const at::Tensor& tensor) const;
  std::optional<size_t> makeConstant(const TensorWish& wish);
  Case pendingCase();

  Choices& choices_;
  uint64_t seed_;
  const Swarm& swarm_;
  const GenerateOptions& options_;
  std::shared_ptr<torch::jit::Graph> graph_;
  InputStyle style_;
  std::vector<InputSpec> inputs_;
  std::vector<std::pair<c10::IValue, torch::jit::Value*>> constants_;
  std::vector<at::Tensor> frozen_;  // tensor constants: every run shares them, so nothing may write them
  torch::jit::Node* last_constant_ = nullptr;
  Execution execution_;
  std::vector<Operand> live_;
  std::vector<torch::jit::Value*> integers_;
  const torch::jit::Value* preferred_ = nullptr;
  std::vector<Open> open_;
  bool writes_ = false;  // something has been written: gradients can be spoiled
};

}  // namespace faultline
