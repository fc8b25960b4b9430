// Operand rules: how the operands of an op are found among the values at hand, or made.
//
// A rule has a word per argument of the schema. Words for tensors are predicates joined by "+"
// (tensor_rules.def): each says which values fit, and what to make when none does; later operands see the
// earlier ones. Other words (value_rules.def) make an attribute from the operands so far. "none", "true" and
// "false" are themselves.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generators/ops/op_row.h"
#include "generators/ops/operand.h"

namespace faultline {

struct Operands {
  std::vector<torch::jit::Value*> arguments;  // one per argument of the schema
  std::vector<Operand> tensors;               // the tensor operands among them, lists flattened, as they were
  std::vector<int64_t> integers;  // attributes drawn so far that later words build on (a dimension)
};

// Operands for one op, or nothing when they can neither be found nor made. Draws from source.choices(). The
// operator's schema gives the arguments without a word their defaults.
std::optional<Operands> findOperands(const OpRow& row, const c10::FunctionSchema& schema,
                                     OperandSource& source);

// Whether the row's rule takes these tensors, wishes about values left aside: one list per argument of the
// schema, empty where the argument is no tensor or None. For programs that exist already.
bool operandsFit(const OpRow& row, const std::vector<std::vector<Operand>>& arguments);

struct OperandWord {
  std::string name, help;
  bool tensor = false;  // a predicate on tensors; else a rule for other arguments
};
const std::vector<OperandWord>& operandWords();  // both tables

// "float+like" as {"float", "like"}; "real real+like" first as two words.
std::vector<std::string> splitWords(std::string_view text, char separator);

// Does `from` broadcast to exactly `to`? And the common shape of two, if there is one.
bool broadcastsTo(const std::vector<int64_t>& from, const std::vector<int64_t>& to);
std::optional<std::vector<int64_t>> broadcastSizes(const std::vector<int64_t>& a,
                                                   const std::vector<int64_t>& b);

}  // namespace faultline
