// Types in IR text.
#pragma once
#include <ATen/core/jit_type.h>

#include "engine/ir/lexer.h"

namespace faultline {

// Takes one type from the lexer; throws ReadFailure.
c10::TypePtr readTypeFrom(Lexer& lexer);

// The rest of a tensor type whose name is taken: fields and [Undefined]. `unranked`: it was written as Tensor
// or FloatTensor; otherwise as Float, and no size means no dimension.
c10::TypePtr readTensorTypeFrom(Lexer& lexer, size_t begin, std::optional<c10::ScalarType> dtype,
                                bool unranked);

// One dtype by the name that types use ("Float", "BFloat16"); nullopt: there is none.
std::optional<c10::ScalarType> dtypeByName(std::string_view name);

// "cpu", "cuda:0", "meta". Fails with "expected a device".
c10::Device readDeviceFrom(Lexer& lexer);

// The whole value of an int with its sign; fails on one that does not fit, or is no int.
int64_t readIntFrom(Lexer& lexer, std::string_view what);

}  // namespace faultline
