// Programs with profiles to try passes on.
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/profiling_record.h>

#include "engine/ir/interpretable.h"
#include "faultline/profile.h"
#include "faultline/recorder.h"
#include "generators/choices/choices.h"
#include "generators/generate/generate.h"
#include "oracles/exec/profile_case.h"
#include "oracles/passes/sample_run.h"

namespace faultline {

std::optional<ProfiledSample> sampleOfCase(const Case& c) {
  if (c.runs.empty()) return std::nullopt;
  auto prepared = prepareCase(c);
  if (!prepared) return std::nullopt;
  const ProfiledCase profiled = profiledCase(c, *prepared);
  auto recorder = Recorder::instrument(*profiled.plain, {.inline_subgraphs = true});
  if (!recorder || !runSample(*recorder, c)) return std::nullopt;
  auto graph = withSomeProfileNodes(*profiled.plain, recorder->recording(), c.seed);
  propagateProfileNode(graph);
  if (!findProfileViolations(*graph).empty()) return std::nullopt;
  return ProfiledSample{graph, std::make_shared<const Case>(cloneCase(c))};
}

bool runSample(const Recorder& recorder, const Case& c) {
  const CaseRun& run = c.runs[0];
  torch::jit::Stack stack;
  std::vector<c10::IValue> values;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    auto value = makeInput(run.inputs[i], inputSeed(c.seed, i), values, c.graph->inputs()[i]->type());
    if (!value) return false;
    values.push_back(*value);
  }
  stack.assign(values.begin(), values.end());
  const c10::AutoGradMode mode(run.grad_mode);
  seedGenerator(phaseSeed(c.seed, 0, 0));
  try {
    const Recorder::Run recorded(recorder);
    torch::jit::Code code(interpretable(recorder.graph()), "faultline");
    torch::jit::InterpreterState(code).run(stack);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

std::vector<ProfiledSample> generatedSamples(uint64_t seed, uint64_t cases) {
  const GlobalStateCheck state;
  std::vector<ProfiledSample> samples;
  for (uint64_t index = 0; index < cases; ++index) {
    const uint64_t own = caseSeed(seed, index);
    Choices choices = Choices::fromSeed(own);
    auto sample = sampleOfCase(generateCase(choices, own, {}));
    if (sample) samples.push_back(std::move(*sample));
  }
  state.restore();
  return samples;
}

Result<ProfiledSample> sampleOf(const torch::jit::Graph& graph) {
  auto copy = cloneGraph(graph);
  torch::jit::ProfilingRecord::removeProfileCounter(copy->block());
  propagateProfileNode(copy);
  const auto findings = findProfileViolations(*copy);
  if (!findings.empty())
    return fail(ErrorKind::Invalid, "propagation leaves findings: " + findings[0].message);
  return ProfiledSample{copy, nullptr};
}

}  // namespace faultline
