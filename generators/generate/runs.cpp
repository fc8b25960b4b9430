#include "generators/generate/runs.h"

#include <algorithm>

#include "generators/generate/flips.h"
#include "generators/generate/trial.h"
#include "generators/ops/limits.h"

namespace faultline {

namespace {

// A copy of `run` with one difference, if it has one that the graph bears.
bool applyOne(Case& c, CaseRun& run, Choices& choices, const Swarm& swarm, bool backward_ran) {
  Choices::Span span(choices, "flip");
  CaseRun changed = run;
  if (!flipRun(c, changed, choices, swarm.has(Feature::empty))) return false;
  TrialResult trial = tryRun(c, changed);
  if (!trial.forward || (backward_ran && !trial.backward && !choices.flip(limits::spoiled_percent)))
    return false;
  run = std::move(changed);
  return true;
}

void chooseBackwards(const Case& c, CaseRun& run, Choices& choices, const Swarm& swarm) {
  Choices::Span span(choices, "backwards");
  TrialResult trial = tryRun(c, run);
  // Tensors inside lists and tuples count too, but only `All` reaches them.
  if (!trial.anyGradient()) return;
  run.backwards.push_back({BackwardSpec::Kind::All, 0});
  std::vector<size_t> single;
  for (size_t i = 0; i < trial.requires_grad.size(); ++i) {
    if (trial.requires_grad[i]) single.push_back(i);
  }
  if (swarm.has(Feature::single_outputs) && trial.requires_grad.size() > 1) {
    run.backwards.push_back({BackwardSpec::Kind::Output, single[choices.below(single.size())]});
  }
  if (swarm.has(Feature::double_backward) && trial.backward && tryDoubleBackward(c, run)) {
    run.backwards.push_back({BackwardSpec::Kind::Double, 0});
  }
}

}  // namespace

bool chooseRuns(Case& c, Choices& choices, const Swarm& swarm) {
  Choices::Span span(choices, "runs");
  CaseRun first = c.runs.front();
  TrialResult trial = tryRun(c, first);
  if (!trial.forward) return false;
  std::vector<CaseRun> runs = {first};
  size_t count = 1 + choices.weighted({8, 22, 50, 20});
  bool flips = swarm.has(Feature::flips);
  if (flips && choices.flip(25)) applyOne(c, runs[0], choices, swarm, trial.backward);
  while (runs.size() < std::min(count, limits::max_runs)) {
    CaseRun next = choices.flip(40) ? runs.back() : runs.front();
    if (flips) {
      for (int64_t changes = choices.between(0, 3); changes > 0; --changes) {
        applyOne(c, next, choices, swarm, trial.backward);
      }
    }
    runs.push_back(std::move(next));
  }
  for (CaseRun& run : runs) chooseBackwards(c, run, choices, swarm);
  c.runs = std::move(runs);
  return true;
}

}  // namespace faultline
