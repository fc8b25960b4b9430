// A graph in libtorch's interpreter, with eager autograd: nothing is optimised.
#pragma once
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/ir/interpretable.h"
#include "oracles/exec/execute.h"

namespace faultline {

class InterpretedProgram : public LaneProgram {
 public:
  explicit InterpretedProgram(const std::shared_ptr<torch::jit::Graph>& graph)
      : code_(interpretable(graph), "faultline") {}
  void run(torch::jit::Stack& stack) override { torch::jit::InterpreterState(code_).run(stack); }

 private:
  torch::jit::Code code_;
};

}  // namespace faultline
