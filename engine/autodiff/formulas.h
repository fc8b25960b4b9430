// libtorch's symbolic formulas that do not do what eager autograd does (formulas.def).
#pragma once
#include <string_view>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

struct FormulaFault {
  std::string_view schema;                // "aten::pow.Tensor_Scalar"
  bool (*when)(const torch::jit::Node*);  // the nodes it may show on
  std::string_view condition;             // when it shows, for people
  std::string_view reason;                // what differs
};

const std::vector<FormulaFault>& formulaFaults();  // formulas.def, in its order
// The row that is about this node; nullptr: its formula may be used, or there is one of ours.
const FormulaFault* findFormulaFault(const torch::jit::Node* node);

// The condition of rows that are about every node of their operator.
bool always(const torch::jit::Node* node);

struct StricterFormula {
  std::string_view schema;
  std::string_view condition;
};
const std::vector<StricterFormula>& stricterFormulas();

// Takes out dropout that drops nothing, which eager skips and the formula makes a copy for. Changes `graph`.
void dropIdleDropout(torch::jit::Graph& graph);

// Formulas flatten all but the last dimension by reshape(-1, n), which is refused for tensors without
// elements: puts what is not in its place, in a backward graph without calls. Changes `block`.
void flattenRows(torch::jit::Block* block);

// Formulas of ours, put in place of libtorch's in a graph fresh from `differentiate`. Changes `backward`.
void replaceFormulas(torch::jit::Graph& backward);

}  // namespace faultline
