// Names that a TorchScript source may use from outside (internal to generators/case).
#pragma once
#include <memory>

#include <torch/csrc/jit/frontend/resolver.h>

namespace faultline {

// torch.OP as libtorch's own resolver; also torch.DTYPE, torch.channels_last and the like, math.pi,
// exceptions.
std::shared_ptr<torch::jit::Resolver> scriptResolver();

}  // namespace faultline
