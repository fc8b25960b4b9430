// What an edit finds at one place of a graph: values in scope and their forms on the first run. Internal to
// generators/mutate.
#pragma once
#include <unordered_map>
#include <vector>

#include "generators/case/case.h"
#include "generators/generate/inputs.h"
#include "generators/generate/swarm.h"
#include "generators/mutate/form.h"
#include "generators/ops/operand.h"

namespace faultline {

// Values that may be used by a node put before `place`, oldest first.
std::vector<torch::jit::Value*> valuesInScope(torch::jit::Node* place);

class Scene final : public OperandSource {
 public:
  // `place` is a node of the case's graph or the return node of a block; subgraphs have no scenes.
  Scene(Case& c, Choices& choices, torch::jit::Node* place);

  Choices& choices() override { return choices_; }
  const std::vector<Operand>& tensors() const override { return tensors_; }
  std::vector<torch::jit::Value*> integers() const override { return integers_; }
  torch::jit::Value* constant(const c10::IValue& value) override;
  // A new graph input, the same on every run.
  std::optional<size_t> make(const TensorWish& wish) override;
  torch::jit::Value* list(const std::vector<torch::jit::Value*>& elements) override;
  int64_t drawSize() override { return style_.palette[choices_.below(style_.palette.size())]; }
  bool broadcasts() const override { return true; }
  const torch::jit::Value* preferred() const override { return nullptr; }

  // Its form where it is made; of what is not in scope here too.
  const Form& formOf(const torch::jit::Value* value) const;
  // Others in scope that could stand in its place: tensors of its form, or values of its very type.
  std::vector<torch::jit::Value*> standIns(const torch::jit::Value* value) const;
  torch::jit::Value* addInput(const std::vector<InputSpec>& per_run, const c10::TypePtr& type);
  bool roomForInput() const;

 private:
  void bring(torch::jit::Value* value, const Form& form);

  Case& case_;
  Choices& choices_;
  torch::jit::Node* place_;
  std::vector<torch::jit::Value*> scope_;
  std::unordered_map<const torch::jit::Value*, Form> forms_;
  std::vector<Operand> tensors_;
  std::vector<torch::jit::Value*> integers_;
  InputStyle style_;
  Swarm swarm_;
};

}  // namespace faultline
