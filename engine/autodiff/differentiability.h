// What of a node autodiff can take, and which of its operands and results a gradient passes.
#pragma once
#include <string>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

// "aten::add.Tensor"; the kind alone for nodes without a schema.
std::string schemaName(const torch::jit::Node* node);

// False where no gradient flows whatever requires grad: type_as.other, a comparison's result. For operators
// we know nothing of: true, which is the safe side for both callers (a gradient that may come must be waited
// for).
bool passesGradient(const torch::jit::Node* node, size_t input);
bool carriesGradient(const torch::jit::Node* node, size_t output);

// A value that may hold a tensor somewhere inside.
bool mayHoldTensor(const c10::Type& type);

// A constant, or a list of plain constants: copied into each piece instead of passed, and no op in the user's
// sense.
bool isConstantLike(const torch::jit::Node* node);

// May give back (a view of) an argument, or hold it. Some ops do without a word in their schema.
bool passesStorage(const torch::jit::Node* node);

// Draws from the random stream, prints, raises: what must keep its place among others of the kind. Blocks
// included.
bool isOrdered(const torch::jit::Node* node);

// Switches grad mode, or enters or leaves a context that may. Blocks included.
bool changesMode(const torch::jit::Node* node);

struct CompileChoice {
  bool compiled = true;
  std::string reason;  // why not; a phrase that starts with the op
};

// Whether `node` may stand in a piece that is differentiated ahead of time, by its kind, types, constant
// arguments and formulas.def. `trust_formulas` leaves formulas.def out: for the test that derives it.
CompileChoice compileChoice(torch::jit::Node* node, bool trust_formulas = false);

}  // namespace faultline
