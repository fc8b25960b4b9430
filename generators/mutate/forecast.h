// What will happen to a case as far as can be seen without running it. Internal to generators/mutate.
#pragma once
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "generators/case/case.h"
#include "generators/mutate/form.h"
#include "generators/mutate/form_rules.h"
#include "generators/ops/op_row.h"

namespace faultline {

// Nodes of known ops that the case may throw at, counted once per run.
struct Forecast {
  size_t misfits = 0;  // operands that do not fit, or of which too little is known
  size_t spoils = 0;   // writes to what autograd has kept: backward throws
  bool noWorseThan(const Forecast& other) const { return misfits <= other.misfits && spoils <= other.spoils; }
};

Forecast forecastCase(const Case& c);

// The row of a node's op; nullptr: the generator does not make it.
const OpRow* rowOfNode(const torch::jit::Node* node);

// Of an input that is a tensor of its own; which one it is, and its memory, are for the caller to number.
Form tensorInputForm(const InputSpec& spec);

// Follows one run through the graph. Arms that are not taken are read too, so that their values have forms,
// but nothing that happens in them counts.
class FormReader {
 public:
  FormReader(const Case& c, const CaseRun& run) : c_(c), run_(run), gradients_(run.grad_mode) {}

  std::function<void(const torch::jit::Node*)> before;  // each node; find() then knows all that is in scope
  Forecast read();
  const Form& find(const torch::jit::Value* value) const;  // Unknown where nothing is known

 private:
  Form inputForm(const InputSpec& spec, const std::vector<Form>& earlier);
  Form constantForm(const torch::jit::Node* node);
  void readBlock(const torch::jit::Block* block);
  void readNode(const torch::jit::Node* node);
  void readStructure(const torch::jit::Node* node);
  void readIf(const torch::jit::Node* node);
  void readLoop(const torch::jit::Node* node);
  void readIdle(const torch::jit::Block* block);  // as if, without effects
  void readSubgraph(const torch::jit::Node* node);
  void readRow(const torch::jit::Node* node, const OpRow& row);
  void write(const torch::jit::Node* node, const OpRow& row, const std::vector<Form>& operands,
             const std::optional<ResultForms>& results, const Range& range);
  Form result(const OpRow& row, const std::vector<Form>& operands, const ResultForm* form, bool sibling,
              const Range& range);
  Operand operandOf(const Form& form) const;
  std::optional<c10::IValue> knownValue(const torch::jit::Value* value) const;
  bool gradientsMayBeOn() const { return gradients_.value_or(true); }
  void set(const torch::jit::Value* value, Form form) { forms_.insert_or_assign(value, std::move(form)); }

  const Case& c_;
  const CaseRun& run_;
  std::unordered_map<const torch::jit::Value*, Form> forms_;
  std::unordered_set<size_t> saved_;  // memory that a backward needs as it is
  std::optional<bool> gradients_;
  std::unordered_set<const torch::jit::Node*> misfits_, spoils_;
  size_t next_ = 1;
  size_t idle_ = 0;
};

}  // namespace faultline
