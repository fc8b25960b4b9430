#include "fuzz/cli/break_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "fuzz/cli/model_file.h"
#include "oracles/compare/tolerance.h"
#include "oracles/compare/values.h"
#include "oracles/exec/errors.h"
#include "oracles/exec/execute.h"
#include "oracles/exec/global_state.h"
#include "oracles/exec/observe.h"
#include "oracles/hooks/promise.h"

namespace faultline::cli {
namespace {

using torch::jit::Graph;
using torch::jit::Stack;

struct Parameter {
  std::string name;
  at::Tensor tensor;
};

// One side: inputs, what came out, the loss.
struct Side {
  Stack inputs;
  std::vector<Parameter> tensors;       // among the inputs
  std::vector<int64_t> versions;        // of these, before the run
  std::vector<Parameter> parameters;    // leaves that require grad
  std::map<std::string, size_t> fired;  // calls of the hook of each
  std::vector<std::string> order;       // of these, in the backward from the loss
  std::vector<FoundTensor> outputs;
  at::Tensor loss;  // undefined: no floating-point output
};

Result<Side> makeSide(const Graph& graph, const Case& c) {
  Side side;
  const CaseRun& run = c.runs.front();
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    auto value = makeInput(run.inputs[i], inputSeed(c.seed, i), side.inputs);
    if (!value) return tl::make_unexpected(value.error());
    side.inputs.push_back(*value);
    std::vector<FoundTensor> found;
    findTensors(*value, graph.inputs()[i]->debugName(), i, found, nullptr);
    for (const FoundTensor& one : found) {
      if (!one.tensor.defined()) continue;
      side.tensors.push_back({one.path, one.tensor});
      side.versions.push_back(one.tensor._version());
      if (one.tensor.requires_grad()) side.parameters.push_back({one.path, one.tensor});
    }
  }
  return side;
}

// `run` replaces the inputs on a stack by the outputs; `ran`: called between forward and backward. Gives
// whether there was a backward.
template <class Run, class Ran>
bool execute(Side& side, uint64_t seed, Run run, Ran ran) {
  Stack stack = side.inputs;
  seedGenerator(phaseSeed(seed, 0, 0));
  run(stack);
  ran();
  for (size_t i = 0; i < stack.size(); ++i) {
    findTensors(stack[i], fmt::format("output {}", i), i, side.outputs, nullptr);
  }
  for (const FoundTensor& output : side.outputs) {
    const at::Tensor& t = output.tensor;
    const bool counts = t.defined() && (t.is_floating_point() || t.is_complex()) && t.numel() != 0;
    if (!counts || t.layout() != at::kStrided) continue;
    const at::Tensor mean = (t.is_complex() ? at::real(t) : t).to(at::kDouble).mean();
    side.loss = side.loss.defined() ? side.loss + mean : mean;
  }
  seedGenerator(phaseSeed(seed, 0, 1));
  if (!side.loss.defined() || !side.loss.requires_grad()) return false;
  torch::autograd::backward({side.loss}, {});
  return true;
}

std::string shapeText(const at::Tensor& t) {
  return fmt::format("{}[{}]", c10::toString(t.scalar_type()), fmt::join(t.sizes(), ", "));
}

void compareTensors(const std::string& what, const at::Tensor& eager, const at::Tensor& broken,
                    const Tolerance& tolerance, BreakRun& result) {
  if (eager.defined() != broken.defined()) {
    result.differences.push_back(
        fmt::format("{}: {} only in eager", what, eager.defined() ? "defined" : "undefined"));
  } else if (eager.defined() &&
             (eager.scalar_type() != broken.scalar_type() || eager.sizes() != broken.sizes())) {
    result.differences.push_back(
        fmt::format("{}: {} in eager, {} here", what, shapeText(eager), shapeText(broken)));
  } else if (eager.defined()) {
    const ValueComparison values = compareValues(copyOfValues(eager), copyOfValues(broken), tolerance);
    result.compared += values.counted;
    if (!values.equal) result.differences.push_back(what + values.message);
  }
}

void compareSides(const Side& eager, const Side& broken, const NumericProfile& profile, BreakRun& result) {
  if (eager.outputs.size() != broken.outputs.size()) {
    result.differences.push_back(
        fmt::format("{} outputs in eager, {} here", eager.outputs.size(), broken.outputs.size()));
    return;
  }
  for (size_t i = 0; i < eager.outputs.size(); ++i) {
    const at::Tensor& t = eager.outputs[i].tensor;
    const Tolerance tolerance = t.defined() ? toleranceFor(t.scalar_type(), profile, false) : Tolerance{};
    compareTensors(eager.outputs[i].path, t, broken.outputs[i].tensor, tolerance, result);
    if (eager.loss.defined() && t.defined() && (t.is_floating_point() || t.is_complex())) {
      const double granted = tolerance.absolute + tolerance.relative * std::abs(eager.loss.item<double>());
      result.loss.tolerance = std::max(result.loss.tolerance, granted);
    }
  }
  for (size_t i = 0; i < eager.tensors.size(); ++i) {
    const auto written = [i](const Side& side) {
      return side.tensors[i].tensor._version() != side.versions[i];
    };
    if (!written(eager) && !written(broken)) continue;
    const at::Tensor& t = eager.tensors[i].tensor;
    compareTensors("input " + eager.tensors[i].name + ", which is written,", t, broken.tensors[i].tensor,
                   toleranceFor(t.scalar_type(), profile, false), result);
  }
  for (size_t i = 0; i < eager.parameters.size(); ++i) {
    const at::Tensor& t = eager.parameters[i].tensor;
    compareTensors("gradient of " + eager.parameters[i].name, t.grad(), broken.parameters[i].tensor.grad(),
                   toleranceFor(t.scalar_type(), profile, true), result);
  }
  if (!eager.loss.defined()) return;
  result.loss.eager = eager.loss.item<double>();
  result.loss.broken = broken.loss.item<double>();
  const double difference = std::abs(result.loss.eager - result.loss.broken);
  const bool both_nan = std::isnan(result.loss.eager) && std::isnan(result.loss.broken);
  // Infinities differ by NaN.
  result.loss.equal =
      both_nan || result.loss.eager == result.loss.broken || difference <= result.loss.tolerance;
}

HookPromise promiseOf(const Case& c, const CompiledGraph& compiled) {
  std::vector<PieceTrace> pieces;
  for (const CompiledPiece& piece : compiled.pieces()) pieces.push_back({piece.ops, true, {}});
  return HookPromise(c, pieces);
}

// faultline/graph_break.h promises: every hook of a parameter of piece k fires as often as in eager (the
// program may run backwards of its own), after k's backward has begun (or, since no gradient may come from
// there, that of another piece that uses it) and before that of any earlier piece.
void checkPromises(const BreakPlan& plan, const Graph& graph, const HookPromise& promise, const Side& eager,
                   const Side& broken, BreakRun& result) {
  std::map<std::string, size_t> input_of;
  for (const torch::jit::Value* input : graph.inputs()) input_of[input->debugName()] = input->offset();
  const auto anotherBegan = [&](const std::string& parameter, uint64_t seq) {
    const auto input = input_of.find(parameter);
    if (input == input_of.end()) return false;
    const std::set<int>& users = promise.piecesOf(input->second);
    return std::any_of(result.events.begin(), result.events.end(), [&](const TimelineEvent& event) {
      return event.what == TimelineEvent::What::Backward && event.seq < seq && users.count(event.piece) != 0;
    });
  };
  // Of the backward from the loss: what the program's own do is its business, but for how often hooks fire.
  std::map<int, uint64_t> first;  // forward of each piece: the gradient is whole when that has run backward
  std::map<std::string, std::vector<uint64_t>> fired;
  std::map<std::string, size_t> times_fired;
  for (const TimelineEvent& event : result.events) {
    if (event.what == TimelineEvent::What::Forward) first.emplace(event.piece, event.seq);
    if (event.what != TimelineEvent::What::Hook) continue;
    ++times_fired[event.name];
    if (event.seq >= result.forward_ended) fired[event.name].push_back(event.seq);
  }
  for (const Parameter& parameter : broken.parameters) {
    const size_t times = times_fired[parameter.name];
    const auto expected = eager.fired.find(parameter.name);
    const size_t in_eager = expected == eager.fired.end() ? 0 : expected->second;
    if (times != in_eager) {
      result.broken_promises.push_back(
          fmt::format("the hook of {} fired {} times, in eager {}", parameter.name, times, in_eager));
    }
  }
  for (size_t k = 0; k < plan.pieces.size(); ++k) {
    const auto own = first.find(static_cast<int>(k));
    if (own == first.end()) continue;  // of a block that did not run
    for (const std::string& parameter : plan.pieces[k].parameters) {
      for (const uint64_t seq : fired[parameter]) {
        for (const TimelineEvent& event : result.events) {
          if (event.what != TimelineEvent::What::Backward || event.seq < result.forward_ended) continue;
          const bool early = event.forward == own->second && seq < event.seq && !anotherBegan(parameter, seq);
          const bool late = event.forward < own->second && seq > event.seq;
          if (!early && !late) continue;
          result.broken_promises.push_back(
              fmt::format("the hook of {} (piece {}) fired {} the backward of piece {}", parameter, k,
                          early ? "before" : "after", event.piece));
        }
      }
    }
  }
}

// By piece, since inside one the order is free: autograd's queue decides it.
void compareHookOrder(const BreakPlan& plan, const Graph& graph, const HookPromise& promise,
                      const Side& eager, const Side& broken, BreakRun& result) {
  std::map<std::string, const at::Tensor*> tensors;
  for (const Parameter& parameter : broken.parameters) tensors[parameter.name] = &parameter.tensor;
  const auto bytesOf = [&](const std::string& name) {
    return tensors.count(name) ? static_cast<int64_t>(tensors[name]->nbytes()) : 0;
  };
  int64_t bytes = 0, eager_bytes = 0;
  size_t hooks_fired = 0;
  for (const TimelineEvent& event : result.events) {
    const bool hook = event.what == TimelineEvent::What::Hook;
    if (!hook && event.what != TimelineEvent::What::Backward) continue;
    if (event.seq < result.forward_ended) {
      result.own_hooks += hook ? 1 : 0;
      continue;
    }
    auto at = std::find_if(result.hook_order.begin(), result.hook_order.end(),
                           [&](const PieceHooks& one) { return one.piece == event.piece; });
    if (at == result.hook_order.end()) {
      PieceHooks added;
      added.piece = event.piece;
      for (size_t k = 0; k < plan.pieces.size(); ++k) {
        for (const std::string& name : plan.pieces[k].parameters) {
          if (static_cast<int>(k) == event.piece && tensors.count(name) && tensors[name]->grad().defined()) {
            added.predicted.push_back(name);
          }
        }
      }
      at = result.hook_order.insert(result.hook_order.end(), std::move(added));
    }
    if (hook) {
      at->observed.push_back(event.name);
      bytes += bytesOf(event.name);
      eager_bytes += hooks_fired < eager.order.size() ? bytesOf(eager.order[hooks_fired]) : 0;
      ++hooks_fired;
    }
    at->bytes_ready = bytes;
    at->eager_bytes_ready = eager_bytes;
  }
  const auto ran = [&](size_t piece) {
    return std::any_of(result.hook_order.begin(), result.hook_order.end(),
                       [&](const PieceHooks& hooks) { return hooks.piece == static_cast<int>(piece); });
  };
  std::map<std::string, size_t> planned;  // parameter to the piece that it is predicted for
  for (size_t k = 0; k < plan.pieces.size(); ++k) {
    for (const std::string& name : plan.pieces[k].parameters) planned.emplace(name, k);
  }
  std::map<std::string, size_t> input_of;
  for (const torch::jit::Value* input : graph.inputs()) input_of[input->debugName()] = input->offset();
  // Why the hook may have fired with `piece`; nothing: it is for the prediction to say.
  const auto elsewhere = [&](const std::string& name, int piece) -> std::optional<HookElsewhere> {
    using Why = HookElsewhere::Why;
    const auto plan_of = planned.find(name);
    if (plan_of == planned.end()) return HookElsewhere{Why::Unplanned, name};
    if (!ran(plan_of->second)) return HookElsewhere{Why::DidNotRun, name};
    const auto input = input_of.find(name);
    const bool uses = input != input_of.end() && promise.piecesOf(input->second).count(piece) != 0;
    if (uses && piece != static_cast<int>(plan_of->second)) {
      return HookElsewhere{promise.mayBeHandedOn(input->second) ? Why::HandedOn : Why::NoGradient, name};
    }
    return std::nullopt;
  };
  std::set<std::string> excused;
  for (PieceHooks& hooks : result.hook_order) {
    for (const std::string& name : hooks.observed) {
      if (auto other = elsewhere(name, hooks.piece)) {
        excused.insert(name);
        hooks.elsewhere.push_back(std::move(*other));
      }
    }
  }
  for (PieceHooks& hooks : result.hook_order) {
    const auto without = [&](std::vector<std::string> names) {
      std::erase_if(names, [&](const std::string& name) { return excused.count(name) != 0; });
      return names;
    };
    const std::vector<std::string> here = without(hooks.observed), expected = without(hooks.predicted);
    hooks.as_predicted = std::is_permutation(expected.begin(), expected.end(), here.begin(), here.end());
  }
}

}  // namespace

Result<BreakRun> runBroken(const CompiledGraph& compiled, const BreakPlan& plan,
                           const std::shared_ptr<Graph>& graph, const Case& c) {
  auto eager = makeSide(*graph, c);
  if (!eager) return tl::make_unexpected(eager.error());
  BreakRun result;
  for (const Parameter& parameter : eager->parameters) {
    parameter.tensor.register_hook([&side = *eager, name = parameter.name](const at::Tensor&) {
      ++side.fired[name];
      side.order.push_back(name);
    });
  }
  try {
    torch::jit::Code code(cloneGraph(*graph), "eager");
    execute(
        *eager, c.seed, [&](Stack& stack) { torch::jit::InterpreterState(code).run(stack); },
        [&] { eager->order.clear(); });
  } catch (...) {
    const std::string text = describeException(std::current_exception()).text;
    return fail(ErrorKind::Invalid, fmt::format("the program throws in eager PyTorch: {}{}",
                                                decisiveLine(text), hintAtValues(c)));
  }
  auto broken = makeSide(*graph, c);
  if (!broken) return tl::make_unexpected(broken.error());
  Timeline& timeline = compiled.timeline();
  timeline.clear();
  for (const Parameter& parameter : broken->parameters) {
    result.hooked.push_back(parameter.name);
    parameter.tensor.register_hook(
        [&timeline, name = parameter.name](const at::Tensor&) { timeline.hook(name); });
  }
  try {
    result.backward = execute(
        *broken, c.seed, [&](Stack& stack) { compiled.run(stack); },
        [&] {
          const std::vector<TimelineEvent> so_far = timeline.events();
          result.forward_ended = so_far.empty() ? 0 : so_far.back().seq + 1;
        });
  } catch (...) {
    result.error = describeException(std::current_exception()).text;
  }
  result.events = timeline.events();
  if (!result.error.empty()) return result;
  for (const Parameter& parameter : broken->parameters) {
    if (!parameter.tensor.grad().defined()) result.without_gradient.push_back(parameter.name);
  }
  compareSides(*eager, *broken, numericProfile(*graph), result);
  const HookPromise promise = promiseOf(c, compiled);
  checkPromises(plan, *graph, promise, *eager, *broken, result);
  compareHookOrder(plan, *graph, promise, *eager, *broken, result);
  return result;
}

}  // namespace faultline::cli
