#include "generators/generate/trial.h"

#include <algorithm>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/grad_mode.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/support/check.h"
#include "generators/choices/choices.h"

namespace faultline {

namespace {

using torch::autograd::Engine;

std::vector<c10::IValue> makeInputs(const Case& c, const CaseRun& run) {
  std::vector<c10::IValue> inputs;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    auto made = makeInput(run.inputs[i], mixSeed(c.seed, i), inputs);
    FAULTLINE_CHECK(made.has_value(), made ? "" : made.error().str());
    inputs.push_back(*made);
  }
  return inputs;
}

void collectTensors(const c10::IValue& value, std::vector<at::Tensor>& into) {
  if (value.isTensor() && value.toTensor().defined()) into.push_back(value.toTensor());
  if (value.isTensorList()) {
    for (const at::Tensor& element : value.toTensorVector()) into.push_back(element);
  }
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) collectTensors(element, into);
  }
}

std::vector<at::Tensor> thatRequireGrad(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> all, with_gradient;
  for (const c10::IValue& value : values) collectTensors(value, all);
  for (const at::Tensor& tensor : all) {
    if (tensor.requires_grad()) with_gradient.push_back(tensor);
  }
  return with_gradient;
}

// The gradients of the sum of `of` with respect to `inputs`; throws what backward throws.
torch::autograd::variable_list gradients(const std::vector<at::Tensor>& of,
                                         const std::vector<at::Tensor>& inputs, bool create_graph) {
  torch::autograd::edge_list roots, ends;
  torch::autograd::variable_list seeds;
  for (const at::Tensor& tensor : of) {
    if (tensor.grad_fn() == nullptr) continue;
    roots.push_back(torch::autograd::impl::gradient_edge(tensor));
    seeds.push_back(at::ones_like(tensor));
  }
  for (const at::Tensor& tensor : inputs) ends.push_back(torch::autograd::impl::gradient_edge(tensor));
  if (roots.empty() || ends.empty()) return {};
  return Engine::get_default_engine().execute(roots, seeds, /*keep_graph=*/true, create_graph,
                                              /*accumulate_grad=*/false, ends);
}

struct Forward {
  std::vector<c10::IValue> inputs, results;
};

Forward execute(const Case& c, const CaseRun& run, const NodeObserver& observer = {}) {
  Forward forward;
  forward.inputs = makeInputs(c, run);
  Execution execution;
  execution.observer = observer;
  for (size_t i = 0; i < forward.inputs.size(); ++i) execution.set(c.graph->inputs()[i], forward.inputs[i]);
  torch::autograd::AutoGradMode mode(run.grad_mode);
  execution.run(c.graph->block());
  for (const torch::jit::Value* output : c.graph->outputs()) forward.results.push_back(execution.get(output));
  return forward;
}

}  // namespace

bool TrialResult::anyGradient() const {
  return std::any_of(requires_grad.begin(), requires_grad.end(),
                     [](bool requires_it) { return requires_it; });
}

TrialResult tryRun(const Case& c, const CaseRun& run, const NodeObserver& observer) {
  TrialResult result;
  try {
    Forward forward = execute(c, run, observer);
    result.forward = true;
    for (const c10::IValue& value : forward.results) {
      result.requires_grad.push_back(value.isTensor() && value.toTensor().requires_grad());
    }
    gradients(thatRequireGrad(forward.results), thatRequireGrad(forward.inputs), /*create_graph=*/false);
    result.backward = true;
  } catch (const std::exception&) {
    // That it threw is all there is to know.
  }
  return result;
}

bool tryDoubleBackward(const Case& c, const CaseRun& run) {
  try {
    Forward forward = execute(c, run);
    std::vector<at::Tensor> inputs = thatRequireGrad(forward.inputs);
    torch::autograd::variable_list first =
        gradients(thatRequireGrad(forward.results), inputs, /*create_graph=*/true);
    std::vector<at::Tensor> again;
    for (const at::Tensor& gradient : first) {
      if (gradient.defined() && gradient.requires_grad()) again.push_back(gradient);
    }
    if (again.empty()) return false;
    gradients(again, inputs, /*create_graph=*/false);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool interpreterRuns(const Case& c, const CaseRun& run) {
  try {
    torch::jit::Code code(c.graph, "case");
    torch::jit::Stack stack = makeInputs(c, run);
    torch::autograd::AutoGradMode mode(run.grad_mode);
    torch::jit::InterpreterState(code).run(stack);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace faultline
