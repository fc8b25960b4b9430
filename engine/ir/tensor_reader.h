// Tensor constants in IR text: our own form, which loses nothing, and what libtorch's printer leaves of them.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>

#include "engine/ir/lexer.h"

namespace faultline {

// tensor(Float(2, 3), [0., 1., …]) and its other forms (README.md); the word `tensor` is already taken.
at::Tensor readTensorFrom(Lexer& lexer);

// " 0  1  2 [ CPUFloatType{3} ]", slices "(1,.,.) = …", "Columns 1 to 8 …" and scales "1e+05 *" included.
// Line ends are blanks, as libtorch has replaced them. Only the four digits that libtorch printed come back.
at::Tensor readPrintedTensorFrom(Lexer& lexer);

// "{2.5}": one element of the dtype and shape that `type` says, if it says them.
at::Tensor readBracedScalarFrom(Lexer& lexer, const c10::TypePtr& type);

}  // namespace faultline
