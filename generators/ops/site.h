// Where an operand is being looked for: the operands before it and where to look. Shared by the two tables of
// words.
#pragma once
#include <string>
#include <vector>

#include "generators/ops/rules.h"

namespace faultline {

struct Site {
  Operands& found;
  OperandSource& source;

  const Operand& first() const { return found.tensors.front(); }
  Choices& choices() const { return source.choices(); }
  torch::jit::Value* constant(const c10::IValue& value) const { return source.constant(value); }
};

// A tensor for which every predicate holds, found or made, and noted in site.found; nullptr: none.
torch::jit::Value* findTensor(Site& site, const std::vector<std::string>& predicates);
// Whether every predicate that is no wish holds for the operand; what it is compared with stands in
// site.found.
bool tensorFits(const Operand& operand, const Site& site, const std::vector<std::string>& predicates);
bool isTensorWord(std::string_view word);

// The argument that a word of value_rules.def gives; nullptr: none. Aborts on an unknown word.
torch::jit::Value* makeArgument(Site& site, std::string_view word);

// The predicates on tensor number `element` of an argument that a word of value_rules.def makes.
std::vector<std::string> elementPredicates(std::string_view word, size_t element);

std::vector<OperandWord> tensorWords();
std::vector<OperandWord> valueWords();

// Sizes that `operand` broadcasts to: ones grow, and now and then a dimension is put before them.
std::vector<int64_t> expandedSizes(const Operand& operand, OperandSource& source);

}  // namespace faultline
