// Gradients of ours, for ops that libtorch's autodiff has no formula for, a wrong one, or one of more ops
// than eager's (own_formulas.def).
#pragma once
#include <string_view>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

struct OwnFormula {
  std::string_view schema;  // "aten::hardtanh"
  bool (*when)(const torch::jit::Node*);
  std::string_view operand;     // whose gradient it is
  std::string_view parameters;  // what it takes, with blanks between (own_formulas.def)
  std::string_view expression;  // TorchScript
};

const std::vector<OwnFormula>& ownFormulas();  // own_formulas.def, in its order

// The rows that are about `node`, none or one per operand that a gradient goes to.
std::vector<const OwnFormula*> findOwnFormulas(const torch::jit::Node* node);
bool hasOwnFormula(const torch::jit::Node* node);

// `formula` as a graph of its parameters. Any number of threads.
const std::shared_ptr<torch::jit::Graph>& gradientGraph(const OwnFormula& formula);

}  // namespace faultline
