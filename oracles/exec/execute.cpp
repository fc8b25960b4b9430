#include "oracles/exec/execute.h"

#include <chrono>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/jit/runtime/print_handler.h>

#include "engine/support/check.h"
#include "generators/choices/choices.h"
#include "oracles/exec/errors.h"
#include "oracles/exec/global_state.h"
#include "oracles/exec/observe.h"

namespace faultline {
namespace {

thread_local StepObserver step_observer;

// Cases warn and print; a lane is quiet, and stdout belongs to a worker's protocol.
class Silence {
 public:
  Silence() : print_before_(torch::jit::getPrintHandler()), guard_(&handler_) {
    torch::jit::setPrintHandler([](const std::string&) {});
  }
  ~Silence() { torch::jit::setPrintHandler(print_before_); }

 private:
  class Nothing : public c10::WarningHandler {
   public:
    void process(const c10::Warning&) override {}
  };
  torch::jit::PrintHandler print_before_;
  Nothing handler_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

// Leaves that the history of `tensor` ends at.
void findLeaves(const at::Tensor& tensor, std::vector<at::Tensor>& leaves) {
  std::vector<torch::autograd::Node*> open = {tensor.grad_fn().get()};
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    if (node == nullptr) continue;
    if (auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node)) leaves.push_back(leaf->variable);
    for (const torch::autograd::Edge& edge : node->next_edges()) open.push_back(edge.function.get());
  }
}

bool carriesGradient(const at::Tensor& t) {
  return t.defined() && t.requires_grad() && (t.is_floating_point() || t.is_complex());
}

// Ops that leave another grad mode behind on purpose: then the mode after a phase is the case's doing.
bool setsModes(const torch::jit::Block* block) {
  for (const torch::jit::Node* node : block->nodes()) {
    const std::string kind = node->kind().toQualString();
    if (kind.find("set_grad_enabled") != std::string::npos || kind == "prim::Enter" ||
        kind == "prim::CallMethod") {
      return true;
    }
    for (const torch::jit::Block* inner : node->blocks()) {
      if (setsModes(inner)) return true;
    }
  }
  return false;
}

// One run: its tensors live from the forward to the last backward.
class RunExecution {
 public:
  RunExecution(const CaseRun& run, size_t index, uint64_t seed, const PreparedCase& prepared,
               LaneProgram* program, const std::exception_ptr& prepare_error)
      : run_(run),
        index_(index),
        seed_(seed),
        prepared_(prepared),
        program_(program),
        prepare_error_(prepare_error) {}

  // Empty, or why the inputs cannot be made here.
  std::string makeInputs();
  RunTrace execute();

 private:
  struct Watched {  // an input tensor that required grad before the forward
    FoundTensor found;
    std::shared_ptr<at::Tensor> captured;  // of non-leaves: what arrived
  };

  template <class Body>
  PhaseTrace phase(PhaseTrace::Kind kind, int backward, bool grad_mode, Body body);
  void installHooks();
  void forward(PhaseTrace& trace);
  void backward(const BackwardSpec& spec, PhaseTrace& trace);
  void runBackward(const std::vector<FoundTensor>& from, bool create_graph);
  std::vector<FoundTensor> gradients(const std::vector<Watched>& watched) const;
  void observeGradients(PhaseTrace& trace) const;
  void clearGradients();

  const CaseRun& run_;
  const size_t index_;
  const uint64_t seed_;
  const PreparedCase& prepared_;
  LaneProgram* program_;
  const std::exception_ptr& prepare_error_;

  std::vector<c10::IValue> values_;
  std::vector<FoundTensor> inputs_;
  std::vector<Watched> watched_;
  std::vector<FoundTensor> outputs_;
  // Under the non-leaf inputs. What they hold after a backward with a graph of its own holds them: a ring
  // that nobody would free.
  std::vector<at::Tensor> hidden_leaves_;
  HookSite site_;
};

std::string RunExecution::makeInputs() {
  if (run_.inputs.size() != prepared_.graph->inputs().size()) return "invalid_case";
  for (size_t i = 0; i < run_.inputs.size(); ++i) {
    auto value =
        makeInput(run_.inputs[i], inputSeed(seed_, i), values_, prepared_.graph->inputs()[i]->type());
    if (!value) return run_.inputs[i].device == c10::DeviceType::CPU ? "input_unsupported" : "no_device";
    values_.push_back(*value);
    findTensors(values_.back(), "in" + std::to_string(i), i, inputs_, nullptr);
  }
  return {};
}

void RunExecution::installHooks() {
  for (const FoundTensor& found : inputs_) {
    if (!found.tensor.defined() || !found.tensor.requires_grad()) continue;
    Watched watched{found, nullptr};
    if (!found.tensor.is_leaf()) {
      // Not retain_grad: that follows the tensor through in-place writes, the gradient of the input does not.
      watched.captured = std::make_shared<at::Tensor>();
      findLeaves(found.tensor, hidden_leaves_);
      found.tensor.register_hook([into = watched.captured](const at::Tensor& grad) { *into = grad; });
    }
    watched_.push_back(std::move(watched));
  }
  for (const HookSpec& hook : prepared_.input_hooks) {
    const std::string on = "in" + std::to_string(hook.input);
    if (hook.input < values_.size() && values_[hook.input].isTensor()) {
      installHook(hook.kind, hook.action, on, values_[hook.input].toTensor(), site_);
    }
  }
}

// Runs `body` with the caller's grad mode, a generator seeded for this phase, and errors caught.
template <class Body>
PhaseTrace RunExecution::phase(PhaseTrace::Kind kind, int backward, bool grad_mode, Body body) {
  PhaseTrace trace;
  trace.kind = kind;
  trace.backward = backward;
  if (step_observer) step_observer(static_cast<int>(index_), trace.name());
  seedGenerator(phaseSeed(seed_, index_, static_cast<size_t>(backward + 1)));
  const bool mode_before = c10::GradMode::is_enabled();
  c10::GradMode::set_enabled(grad_mode);
  try {
    body(trace);
    FAULTLINE_CHECK(c10::GradMode::is_enabled() == grad_mode || setsModes(prepared_.graph->block()),
                    "a lane left global state changed: grad_mode after " + trace.name());
  } catch (...) {
    trace.error = describeException(std::current_exception());
  }
  c10::GradMode::set_enabled(mode_before);
  if (!trace.error) logRetained(site_);
  forgetRetained(site_);
  trace.hooks = site_.log->take();
  return trace;
}

void RunExecution::forward(PhaseTrace& trace) {
  if (prepare_error_) std::rethrow_exception(prepare_error_);
  torch::jit::Stack stack(values_.begin(), values_.end());
  {
    const SeamScope seams(prepared_.seam_hooks, site_);
    program_->run(stack);
  }
  for (size_t i = 0; i < stack.size(); ++i) {
    findTensors(stack[i], "out" + std::to_string(i), i, outputs_, &trace.scalars);
  }
  Identities identities;
  for (const FoundTensor& found : inputs_) {
    trace.inputs.push_back(observeTensor(found.tensor, found.path, &identities));
  }
  for (const FoundTensor& found : outputs_) {
    trace.outputs.push_back(observeTensor(found.tensor, found.path, &identities));
  }
  program_->afterForward(site_);
}

void RunExecution::runBackward(const std::vector<FoundTensor>& from, bool create_graph) {
  std::vector<at::Tensor> roots, weights;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!carriesGradient(from[i].tensor)) continue;
    roots.push_back(from[i].tensor);
    weights.push_back(weightsFor(from[i].tensor, seed_, i));
  }
  if (roots.empty()) return;  // nothing requires grad: every gradient stays undefined
  torch::autograd::backward(roots, weights, /*retain_graph=*/true, create_graph);
}

std::vector<FoundTensor> RunExecution::gradients(const std::vector<Watched>& watched) const {
  std::vector<FoundTensor> found = {};
  for (const Watched& input : watched) {
    found.push_back(input.found);
    found.back().tensor = input.captured ? *input.captured : gradientOf(input.found.tensor);
  }
  return found;
}

void RunExecution::clearGradients() {
  for (const Watched& input : watched_) {
    if (input.captured) {
      *input.captured = at::Tensor();
    } else {
      input.found.tensor.mutable_grad() = at::Tensor();
    }
  }
  for (const at::Tensor& leaf : hidden_leaves_) leaf.mutable_grad() = at::Tensor();
}

void RunExecution::backward(const BackwardSpec& spec, PhaseTrace& trace) {
  std::vector<FoundTensor> from;
  for (const FoundTensor& output : outputs_) {
    if (spec.kind != BackwardSpec::Kind::Output || output.position == spec.output) from.push_back(output);
  }
  try {
    runBackward(from, spec.kind == BackwardSpec::Kind::Double);
  } catch (...) {
    observeGradients(trace);  // what was complete by then
    throw;
  }
  if (spec.kind == BackwardSpec::Kind::Double) {
    const std::vector<FoundTensor> first = gradients(watched_);
    logRetained(site_);
    clearGradients();
    runBackward(first, /*create_graph=*/false);
  }
  observeGradients(trace);
}

void RunExecution::observeGradients(PhaseTrace& trace) const {
  for (const FoundTensor& gradient : gradients(watched_)) {
    trace.gradients.push_back(observeTensor(gradient.tensor, gradient.path));
  }
}

RunTrace RunExecution::execute() {
  RunTrace trace;
  installHooks();
  trace.phases.push_back(
      phase(PhaseTrace::Kind::Forward, -1, run_.grad_mode, [&](PhaseTrace& t) { forward(t); }));
  trace.executed = site_.executed;
  if (trace.phases.back().error) return trace;
  for (size_t k = 0; k < run_.backwards.size(); ++k) {
    const BackwardSpec& spec = run_.backwards[k];
    const auto kind =
        spec.kind == BackwardSpec::Kind::Double ? PhaseTrace::Kind::Double : PhaseTrace::Kind::Backward;
    trace.phases.push_back(
        phase(kind, static_cast<int>(k), /*grad_mode=*/true, [&](PhaseTrace& t) { backward(spec, t); }));
    clearGradients();
  }
  return trace;
}

}  // namespace

StepObserver setStepObserver(StepObserver observer) {
  return std::exchange(step_observer, std::move(observer));
}

uint64_t inputSeed(uint64_t seed, size_t input) { return mixSeed(seed, input); }

uint64_t phaseSeed(uint64_t seed, size_t run, size_t phase) {
  constexpr uint64_t kPhases = 1u << 20;  // keeps these apart from the inputs' seeds
  return mixSeed(mixSeed(seed, run), kPhases + phase);
}

at::Tensor weightsFor(const at::Tensor& like, uint64_t seed, size_t index) {
  constexpr uint64_t kWeights = 1u << 21;
  Random random(mixSeed(seed, kWeights + index));
  const at::NoGradGuard no_grad;
  const auto draw = [&] {
    at::Tensor numbers = at::empty(like.sizes(), at::TensorOptions().dtype(at::kDouble));
    double* data = numbers.mutable_data_ptr<double>();
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      // Away from 0, so that no output counts for nothing; of both signs.
      const double magnitude = 0.25 + random.uniform();
      data[i] = random.below(2) == 0 ? magnitude : -magnitude;
    }
    return numbers;
  };
  at::Tensor weights = draw();
  // Real ones would hide a conjugate that is missing.
  if (like.is_complex()) weights = at::complex(weights, draw());
  return weights.to(like.options().dtype(like.scalar_type()));
}

Trace ProgramLane::execute(const Case& c, uint64_t seed) {
  Trace trace;
  trace.lane = name_;
  const auto start = std::chrono::steady_clock::now();
  const GlobalStateCheck state;
  {
    const Silence silence;
    const at::Tensor generator = generatorState();
    auto prepared =
        planIsSupported(c.plan) ? prepareCase(c) : fail(ErrorKind::Unsupported, "no actor for the plan");
    if (!prepared) {
      trace.skip = "plan_unsupported";
    } else {
      std::unique_ptr<LaneProgram> program;
      std::exception_ptr prepare_error;
      try {
        program = prepare(c, *prepared, trace);
      } catch (...) {
        prepare_error = std::current_exception();
      }
      const size_t runs = c.runs.empty() ? 0 : std::max(c.runs.size(), kLeastRuns);
      for (size_t i = 0; i < runs && trace.skip.empty(); ++i) {
        RunExecution run(c.runs[std::min(i, c.runs.size() - 1)], i, seed, *prepared, program.get(),
                         prepare_error);
        trace.skip = run.makeInputs();
        if (trace.skip.empty()) trace.runs.push_back(run.execute());
      }
      if (program && trace.skip.empty()) program->describe(trace);
    }
    setGeneratorState(generator);
  }
  state.check("lane " + name_);
  trace.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return trace;
}

}  // namespace faultline
