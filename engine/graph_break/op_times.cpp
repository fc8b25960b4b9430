// How long each op takes, for pieces that are balanced by time.
#include <algorithm>
#include <chrono>
#include <exception>
#include <unordered_map>

#include <fmt/format.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/graph_break/parts.h"
#include "engine/ir/interpretable.h"
#include "engine/support/decisive_line.h"
#include "faultline/graph_break.h"

namespace faultline {

namespace {

struct TimedOp {
  std::string name;
  std::vector<Value*> inputs, outputs;
  torch::jit::Code code;
  double shortest = -1;
};

std::vector<TimedOp> timedOps(const WorkingCopy& work) {
  std::vector<TimedOp> ops;
  for (size_t i = 0; i < work.nodes.size(); ++i) {
    if (work.constant[i]) {
      continue;
    }
    Part part = boundary(work, i, i + 1);
    torch::jit::Code code(interpretable(extractPart(work, part)), "op");
    ops.push_back({work.nameOf(i), std::move(part.inputs), std::move(part.outputs), std::move(code)});
  }
  return ops;
}

void runTimed(std::vector<TimedOp>& ops, std::unordered_map<const Value*, c10::IValue> values) {
  for (TimedOp& op : ops) {
    torch::jit::Stack stack;
    for (const Value* input : op.inputs) {
      stack.push_back(values.at(input));
    }
    const auto begin = std::chrono::steady_clock::now();
    torch::jit::InterpreterState(op.code).run(stack);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    op.shortest = op.shortest < 0 ? took.count() : std::min(op.shortest, took.count());
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      values[op.outputs[k]] = std::move(stack[k]);
    }
  }
}

}  // namespace

Result<std::map<std::string, double>> measureOps(const Graph& graph, const torch::jit::Stack& inputs,
                                                 size_t rounds) {
  auto copy = WorkingCopy::make(graph);
  if (!copy) {
    return tl::make_unexpected(copy.error());
  }
  const WorkingCopy& work = **copy;
  if (inputs.size() != work.graph->inputs().size()) {
    return fail(ErrorKind::Invalid,
                fmt::format("the graph takes {} inputs, not {}", work.graph->inputs().size(), inputs.size()));
  }
  std::unordered_map<const Value*, c10::IValue> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.emplace(work.graph->inputs()[i], inputs[i]);
  }
  std::vector<TimedOp> ops = timedOps(work);
  try {
    for (size_t round = 0; round < std::max<size_t>(rounds, 1); ++round) {
      runTimed(ops, values);
    }
  } catch (const c10::Error& error) {
    return fail(ErrorKind::Invalid,
                fmt::format("an op throws: {}", decisiveLine(error.what_without_backtrace())));
  } catch (const std::exception& error) {
    return fail(ErrorKind::Invalid, fmt::format("an op throws: {}", decisiveLine(error.what())));
  }
  std::map<std::string, double> times;
  for (const TimedOp& op : ops) {
    times.emplace(op.name, op.shortest);
  }
  return times;
}

}  // namespace faultline
