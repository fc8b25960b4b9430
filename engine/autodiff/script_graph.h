// Formulas written in TorchScript, as graphs that can be inserted.
#pragma once
#include <memory>
#include <string>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

// The function `name` of `source`, calls inlined. Throws libtorch's error where the source is wrong.
std::shared_ptr<torch::jit::Graph> scriptGraph(const std::string& name, const std::string& source);

}  // namespace faultline
