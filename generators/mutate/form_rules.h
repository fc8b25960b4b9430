// Forms of results from forms of operands: the shape arithmetic of each row of ops.def. Internal to
// generators/mutate.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>

#include "generators/mutate/form.h"
#include "generators/ops/op_row.h"

namespace faultline {

struct FormArgument {
  std::vector<Operand> tensors;       // a tensor, or the elements of a list of tensors
  std::optional<c10::IValue> number;  // any other argument whose value is known
};

struct ResultForm {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  bool contiguous = false;  // known to be
};

struct ResultForms {
  std::vector<ResultForm> tensors;
  bool list = false;  // one result, a list of these
};

// Nothing: the arguments do not fit each other, or one that decides the form is not known. A node of this row
// may throw then.
std::optional<ResultForms> resultForms(const OpRow& row, const std::vector<FormArgument>& arguments);

struct FormRule {
  std::string name;  // of a row, or of a family for rows that have no rule of their own
};
const std::vector<FormRule>& formRules();  // form_rules.def

}  // namespace faultline
