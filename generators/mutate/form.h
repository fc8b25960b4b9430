// What can be known of a value without running anything: the form of a tensor, the value of an integer or a
// flag. Internal to generators/mutate.
#pragma once
#include <optional>
#include <vector>

#include "generators/ops/operand.h"

namespace faultline {

struct Form {
  enum class Kind { Unknown, None, Tensor, Number, List, Tuple };
  Kind kind = Kind::Unknown;

  // Tensor. `operand` holds what is known when `known`; its value and strides are not filled in.
  bool known = false;
  Operand operand;
  size_t object = 0;         // values with one number are one tensor
  size_t maybe_object = 0;   // … may be one tensor: results of ops that may return their argument
  size_t memory = 0;         // values with one number may share memory
  bool leaf = false;         // may share memory with a leaf that requires grad
  bool frozen = false;       // may share memory with a constant of the graph
  bool repeated = false;     // may have elements in the same place
  bool sibling = false;      // one of several views that one op made: autograd refuses writes
  bool hidden_view = false;  // a view that was made while gradients were off
  bool detached = false;     // memory without its history: writes elsewhere bring no gradient

  std::optional<int64_t> number;  // Number: an int or bool whose value is known
  std::vector<Form> elements;     // List and Tuple, when `known`

  bool isTensor() const { return kind == Kind::Tensor; }
  bool sameShape(const Form& other) const {
    return isTensor() && other.isTensor() && known && other.known && operand.sizes == other.operand.sizes &&
           operand.dtype == other.operand.dtype;
  }
};

}  // namespace faultline
