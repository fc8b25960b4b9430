// The order in which pieces run where Ifs and Loops are opened.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

using Register = size_t;

// What stands in a register, or a constant.
struct RunValue {
  std::optional<Register> at;
  c10::IValue constant;
};

struct RunStep;

struct RunArm {
  std::vector<RunStep> steps;
  std::vector<RunValue> results;    // of a Loop: the condition, then what is carried
  std::vector<Register> last_used;  // made in it: nobody reads them after its results are taken
};

struct RunStep {
  const torch::jit::Node* opened = nullptr;  // an If or Loop; nullptr: a piece
  size_t piece = 0;
  std::vector<RunValue> operands;   // of the If or Loop
  std::vector<Register> given;      // Loop: its counter, then what is carried
  std::vector<RunArm> arms;         // If: two; Loop: one
  std::vector<Register> outputs;    // of the If or Loop
  std::vector<Register> last_used;  // made before it: nobody reads them after it
};

// Pieces between which no condition is asked: each list runs in its order, if it runs.
std::vector<std::vector<size_t>> straightRuns(const std::vector<RunStep>& steps);

// Calls `piece(k)` for each piece as often and in the order that the program says. Throws what pieces throw.
void runSteps(const std::vector<RunStep>& steps, std::vector<c10::IValue>& registers,
              const std::function<void(size_t)>& piece);

}  // namespace faultline
