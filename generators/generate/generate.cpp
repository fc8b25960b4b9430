#include "generators/generate/generate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <fmt/format.h>

#include "engine/support/check.h"
#include "generators/generate/grow.h"
#include "generators/generate/plans.h"
#include "generators/generate/profile_nodes.h"
#include "generators/generate/program.h"
#include "generators/generate/runs.h"
#include "generators/generate/subgraphs.h"
#include "generators/generate/swarm.h"

namespace faultline {

namespace {

// Ops that draw random numbers move the default generator while they are tried out; the caller's stream must
// not notice.
class DefaultGeneratorGuard {
 public:
  DefaultGeneratorGuard() : state_(at::detail::getDefaultCPUGenerator().get_state()) {}
  ~DefaultGeneratorGuard() { at::Generator(at::detail::getDefaultCPUGenerator()).set_state(state_); }
  DefaultGeneratorGuard(const DefaultGeneratorGuard&) = delete;
  DefaultGeneratorGuard& operator=(const DefaultGeneratorGuard&) = delete;

 private:
  at::Tensor state_;
};

// What eager PyTorch warns about (deviations of one element, resized results) is part of the cases, not of
// the output.
class Silence {
 public:
  Silence() : guard_(&handler_) {}

 private:
  class Nothing : public c10::WarningHandler {
   public:
    void process(const c10::Warning&) override {}
  };
  Nothing handler_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

bool changesMetadataInPlace(const std::set<std::string>& traits) {
  for (const OpRow& row : opRows()) {
    bool metadata = std::find(row.hazards.begin(), row.hazards.end(), "metadata") != row.hazards.end();
    if (metadata && traits.count("op:" + row.schema) != 0) return true;
  }
  return false;
}

// Complete types where every run agrees: what a pass that trusts them sees is then true.
void completeTypes(Case& c) {
  if (changesMetadataInPlace(caseTraits(c))) return;
  for (size_t i = 0; i < c.graph->inputs().size(); ++i) {
    const InputSpec& spec = c.runs.front().inputs[i];
    bool same = spec.kind == InputSpec::Kind::Tensor;
    same = same && c.graph->inputs()[i]->type()->kind() == c10::TypeKind::TensorType;
    for (const CaseRun& run : c.runs) same = same && run.inputs[i] == spec;
    if (same) c.graph->inputs()[i]->setType(inputType(spec, /*complete=*/true));
  }
}

std::string describeSwarm(const Swarm& swarm) {
  std::string text;
  for (size_t i = 0; i < generatorFeatures().size(); ++i) {
    if (!swarm.features[i]) continue;
    text += (text.empty() ? "" : " ") + generatorFeatures()[i].name;
  }
  return text;
}

}  // namespace

Case generateCase(Choices& choices, uint64_t seed, const GenerateOptions& options) {
  Result<void> valid = validateGenerateOptions(options);
  FAULTLINE_CHECK(valid.has_value(), valid ? "" : valid.error().str());
  torch::autograd::AutoGradMode with_gradient(true);
  DefaultGeneratorGuard same_stream;
  Silence silence;

  Swarm swarm = drawSwarm(choices, options);
  ProgramBuilder program(choices, seed, swarm, options);
  drawInputs(program);
  growProgram(program);
  std::vector<torch::jit::Value*> returns = chooseReturns(program);
  Case made = program.finish(returns);
  FAULTLINE_CHECK(chooseRuns(made, choices, swarm),
                  "a program that ran while it was built does not run any more");
  if (swarm.has(Feature::types)) completeTypes(made);
  if (swarm.has(Feature::subgraphs)) wrapSubgraphs(*made.graph, choices);
  if (swarm.has(Feature::profile)) {
    made.notes["profile"] = toString(insertProfileNodes(made, choices));
    made.plan.profile = "keep";
  }
  choosePlan(made, choices, swarm);
  made.notes["features"] = describeSwarm(swarm);
  return made;
}

uint64_t caseSeed(uint64_t seed, uint64_t index) { return mixSeed(seed, index); }

}  // namespace faultline
