// An autograd node that stands before the producer of a seam, so that the seam's hooks fire before the whole
// piece.
#pragma once
#include <ATen/ATen.h>

namespace faultline {

// `tensor`, which requires grad, under a node of its own: the same values, storage and version counter. What
// eager takes for a view stays one. Hooks on the result fire also in a backward that comes to the producer
// only through a result that the producing op kept for itself (a second one may), once per backward either
// way.
at::Tensor behindSeamNode(const at::Tensor& tensor);

}  // namespace faultline
