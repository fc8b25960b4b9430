// Every difference between the supported versions of torch, and nothing else. The only header with an #if on
// the version.
#pragma once
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/version.h>

#include <type_traits>
#include <utility>

#define FAULTLINE_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// A file compiled against another torch (Debian ships 1.13) must not link in silence.
static_assert(FAULTLINE_TORCH_AT_LEAST(2, 11),
              "faultline needs torch 2.11 or newer: is faultline::torch linked?");

namespace faultline::compat {

// shared_ptr<Node> up to 2.12, intrusive_ptr<Node> from 2.13 on.
using NodePtr = std::remove_cv_t<decltype(torch::autograd::Edge::function)>;

#if FAULTLINE_TORCH_AT_LEAST(2, 13)
using WeakNodePtr = c10::weak_intrusive_ptr<torch::autograd::Node>;
#else
using WeakNodePtr = std::weak_ptr<torch::autograd::Node>;
#endif

template <class T, class... Args>
auto makeNode(Args&&... args) {
#if FAULTLINE_TORCH_AT_LEAST(2, 13)
  return c10::make_intrusive<T>(std::forward<Args>(args)...);
#else
  return std::shared_ptr<T>(new T(std::forward<Args>(args)...), torch::autograd::deleteNode);
#endif
}

// At the bounds of clamp, libtorch's formula and eager autograd agree on 2.11 and do not on 2.15.
inline constexpr bool kClampFormulaIsEagers = !FAULTLINE_TORCH_AT_LEAST(2, 12);

}  // namespace faultline::compat
