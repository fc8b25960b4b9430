// The operator of libtorch behind a row.
#pragma once
#include <memory>

#include <torch/csrc/jit/runtime/operator.h>

#include "generators/ops/op_row.h"

namespace faultline {

struct RowOperator {
  std::shared_ptr<torch::jit::Operator> op;
  c10::Symbol kind;
};

// `row` is one of opRows(). Looked up once: a node's own lookup compares its arguments with every overload of
// the name.
const RowOperator& operatorOf(const OpRow& row);

// Constants of the generator that one node can stand for: numbers, flags, text, None, lists of integers.
bool sameConstant(const c10::IValue& a, const c10::IValue& b);

}  // namespace faultline
