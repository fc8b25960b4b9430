// One row per op of the generator: what it takes, what it gives, what is dangerous about it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

struct OpRow {
  std::string name;             // CLI word, unique: "add", "add_scalar", "t"
  std::string schema;           // an operator of libtorch: "aten::add.Tensor"
  std::string family;           // "unary", "binary", "view", "inplace", "reduction", "matrix", …
  std::string operands;         // operand rule (generators/ops/rules.h)
  bool differentiable = false;  // eager autograd gives its result a gradient
  bool mutates = false;
  bool view = false;
  std::string help;
  std::string result;     // result rule (generators/ops/range.h)
  uint32_t weight = 10;   // against other rows; only the generator's first guess, a case draws its own subset
  bool autodiff = false;  // libtorch has a TorchScript formula: may stand in a prim::DifferentiableGraph
  bool random = false;    // draws from the default generator
  bool data_dependent = false;       // metadata of the result, or whether it throws, depends on values
  std::vector<std::string> hazards;  // words of hazards.def
};

const std::vector<OpRow>& opRows();  // ops.def, in its order
const OpRow* findOpRow(std::string_view name);
// The row of an operator ("aten::add.Tensor"); nullptr: the generator does not make it. Where several rows
// share an operator, the first.
const OpRow* findOpRowOfSchema(std::string_view schema);

struct OpHazard {
  std::string name, help;
};
const std::vector<OpHazard>& opHazards();  // hazards.def

}  // namespace faultline
