// Edits of inputs and runs.
#include <algorithm>

#include "generators/generate/flips.h"
#include "generators/mutate/draft.h"
#include "generators/ops/limits.h"

namespace faultline {

namespace {

CaseRun& pickRun(Draft& draft) { return draft.c.runs[draft.choices.below(draft.c.runs.size())]; }

bool anyGradient(const CaseRun& run) {
  auto requires_grad = [](auto& self, const InputSpec& spec) -> bool {
    return spec.requires_grad || std::any_of(spec.elements.begin(), spec.elements.end(),
                                             [&](const InputSpec& element) { return self(self, element); });
  };
  return std::any_of(run.inputs.begin(), run.inputs.end(),
                     [&](const InputSpec& spec) { return requires_grad(requires_grad, spec); });
}

}  // namespace

bool changeInputs(Draft& draft) {
  // The same choices for each run: what was equal stays equal.
  Choices first = Choices::fromSeed(draft.choices.below(uint64_t{1} << 62));
  if (!flipRun(draft.c, draft.c.runs[0], first, false)) return false;
  for (size_t i = 1; i < draft.c.runs.size(); ++i) {
    Choices again = Choices::fromTape(first.tape().choices);
    flipRun(draft.c, draft.c.runs[i], again, false);
  }
  return true;
}

bool flipOneRun(Draft& draft) {
  CaseRun& run = pickRun(draft);
  return flipRun(draft.c, run, draft.choices, draft.choices.flip(10));
}

bool flipRequiresGradOfOneRun(Draft& draft) {
  return flipRequiresGradOf(draft.c, pickRun(draft), draft.choices);
}

bool changeRunCount(Draft& draft) {
  std::vector<CaseRun>& runs = draft.c.runs;
  if (runs.size() > 1 && draft.choices.flip(50)) {
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(draft.choices.below(runs.size())));
    return true;
  }
  if (runs.size() >= limits::max_runs) return false;
  runs.push_back(CaseRun(runs[draft.choices.below(runs.size())]));
  return true;
}

bool changeBackwards(Draft& draft) {
  CaseRun& run = pickRun(draft);
  std::vector<BackwardSpec>& phases = run.backwards;
  if (!phases.empty() && draft.choices.flip(40)) {
    phases.erase(phases.begin() + static_cast<std::ptrdiff_t>(draft.choices.below(phases.size())));
    return true;
  }
  constexpr size_t most = 3;
  if (phases.size() >= most || !run.grad_mode || !anyGradient(run)) return false;
  auto kind = static_cast<BackwardSpec::Kind>(draft.choices.weighted({50, 35, 15}));
  size_t output =
      kind == BackwardSpec::Kind::Output ? draft.choices.below(draft.graph().outputs().size() + 1) : 0;
  phases.push_back({kind, output});
  return true;
}

bool changeSeed(Draft& draft) {
  draft.c.seed = draft.choices.below(uint64_t{1} << 62);
  return true;
}

}  // namespace faultline
