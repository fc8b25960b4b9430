// One row per op of the generator: what it takes, what it gives, what is dangerous about it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

struct OpRow {
  std::string name;      // CLI word, unique: "add", "add_scalar", "t"
  std::string schema;    // an operator of libtorch: "aten::add.Tensor"
  std::string family;    // "unary", "binary", "view", "inplace", "reduction", "matrix", …
  std::string operands;  // operand rule (generators/ops/rules.h)
  bool differentiable = false;
  bool mutates = false;
  bool view = false;
  std::string help;
};

const std::vector<OpRow>& opRows();  // ops.def, in its order
const OpRow* findOpRow(std::string_view name);

}  // namespace faultline
