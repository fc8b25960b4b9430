// Which calls an inlined node came out of, without the functions that were called.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

// libtorch notes with each inlined node the functions it was inlined out of, and asks them for their names
// when the node throws; nothing keeps them alive, and with the module that a graph was taken from they are
// gone. This puts functions of the same names, which stay for ever, in their place. Changes `graph`.
void detachFromCallers(torch::jit::Graph& graph);

}  // namespace faultline
