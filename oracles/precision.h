// A case computed in another precision: what tells rounding from wrong numbers.
#pragma once
#include "generators/case/case.h"

namespace faultline {

// The same case with every float32, float16, bfloat16 input, tensor constant and dtype argument turned into
// float64, complex64 into complex128; types of tensors are forgotten. Refuses (Unsupported) a case without
// any of these: there is nothing to be gained. The caller sets the default dtype.
Result<Case> toFloat64(const Case& c);

// The same downwards: float64 into float32, complex128 into complex64.
Result<Case> toFloat32(const Case& c);

}  // namespace faultline
