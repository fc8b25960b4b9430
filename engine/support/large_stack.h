// Calls into libtorch's recursive compiler, whose depth the input decides.
#pragma once
#include <cstddef>
#include <functional>

namespace faultline {

// Runs `work` on a thread whose stack may grow to `bytes`, and waits for it; memory is taken as it is used.
// Where no such thread can be had, on the caller's stack. Rethrows what `work` throws. Thread-local state of
// torch (grad mode, …) is that of a new thread.
void runOnLargeStack(size_t bytes, const std::function<void()>& work);

}  // namespace faultline
