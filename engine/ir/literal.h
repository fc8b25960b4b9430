// Constants and attribute values in IR text, before it is known what they are to become: `1` is an int
// attribute, an int in a list of floats, or a float, depending on where it stands.
#pragma once
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/ir/lexer.h"

namespace faultline {

enum class LiteralKind {
  None,
  Bool,
  Int,
  Float,
  Complex,
  String,
  Tensor,
  Type,
  Device,
  Graph,
  List,
  Tuple,
  Dict,
  Typed
};

struct Literal {
  LiteralKind kind = LiteralKind::None;
  size_t begin = 0;            // offset into the text, for errors
  bool truth = false;          // Bool
  int64_t integer = 0;         // Int
  double real = 0;             // Float, Complex; of an Int its nearest double
  double imaginary = 0;        // Complex
  std::string text;            // String; Device; name of a Graph
  at::Tensor tensor;           // Tensor
  c10::TypePtr type;           // Type; Typed: what its one part is annotated with
  std::vector<Literal> parts;  // List, Tuple; Dict: key, value, key, value …; Typed: one
};

// Takes one literal from the lexer. `expected` is the type of the constant it stands for, where there is one:
// libtorch's
// `{2.5}` says nothing of dtype and shape. `as_types`: the attribute is known to hold types, so `(…)` is one.
// Throws ReadFailure.
Literal readLiteral(Lexer& lexer, const c10::TypePtr& expected, bool as_types);

// The value of a TorchScript constant of this type. `lexer` only gives the places of errors: of the first
// part that does not fit. Throws ReadFailure.
c10::IValue valueOfType(const Lexer& lexer, const Literal& literal, const c10::TypePtr& type);

}  // namespace faultline
