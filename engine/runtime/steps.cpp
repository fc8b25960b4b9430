#include "engine/runtime/steps.h"

namespace faultline {

namespace {

using Registers = std::vector<c10::IValue>;
using RunPiece = std::function<void(size_t)>;

Registers taken(const std::vector<RunValue>& from, const Registers& registers) {
  Registers values;
  values.reserve(from.size());
  for (const RunValue& operand : from) {
    values.push_back(operand.at ? registers[*operand.at] : operand.constant);
  }
  return values;
}

void forget(Registers& registers, const std::vector<Register>& dead) {
  for (Register r : dead) {
    registers[r] = c10::IValue();
  }
}

Registers runArm(const RunArm& arm, Registers& registers, const RunPiece& piece) {
  runSteps(arm.steps, registers, piece);
  Registers results = taken(arm.results, registers);
  forget(registers, arm.last_used);
  return results;
}

void runOpened(const RunStep& step, Registers& registers, const RunPiece& piece) {
  Registers results = taken(step.operands, registers);
  size_t first = 0;
  if (step.opened->kind() == torch::jit::prim::If) {
    results = runArm(step.arms[results[0].toBool() ? 0 : 1], registers, piece);
  } else {
    const int64_t trips = results[0].toInt();
    results.erase(results.begin());
    for (int64_t i = 0; i < trips && results[0].toBool(); ++i) {
      registers[step.given[0]] = i;
      for (size_t k = 1; k < step.given.size(); ++k) {
        registers[step.given[k]] = std::move(results[k]);
      }
      results = runArm(step.arms[0], registers, piece);
    }
    forget(registers, step.given);
    first = 1;
  }
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    registers[step.outputs[k]] = std::move(results[first + k]);
  }
  forget(registers, step.last_used);
}

}  // namespace

std::vector<std::vector<size_t>> straightRuns(const std::vector<RunStep>& steps) {
  std::vector<std::vector<size_t>> runs(1);
  for (const RunStep& step : steps) {
    if (!step.opened) {
      runs.back().push_back(step.piece);
      continue;
    }
    for (const RunArm& arm : step.arms) {
      for (auto& inner : straightRuns(arm.steps)) runs.push_back(std::move(inner));
    }
    runs.emplace_back();
  }
  return runs;
}

void runSteps(const std::vector<RunStep>& steps, Registers& registers, const RunPiece& piece) {
  for (const RunStep& step : steps) {
    step.opened ? runOpened(step, registers, piece) : piece(step.piece);
  }
}

}  // namespace faultline
