// Hooks: as often as in the reference, with the same gradients, and, where a graph was broken, between the
// pieces they were promised (oracles/hooks/promise.h). Inside one piece any order is right; `strict` demands
// the reference's.
#include <fmt/format.h>

#include "oracles/compare/phases.h"
#include "oracles/hooks/promise.h"
#include "oracles/oracles.h"

namespace faultline {
namespace {

const char* kindName(HookTrace::Kind kind) {
  return kind == HookTrace::Kind::PieceBackward ? "piece" : hookWord(static_cast<HookKind>(kind));
}

using HookKey = std::pair<std::string, std::string>;  // kind, on

// Hooks that the lane refused to install, by name and with a reason ("hook relu_1: used inside its piece").
std::set<std::string> refusedHooks(const Trace& lane) {
  constexpr std::string_view kPrefix = "hook ";
  std::set<std::string> names;
  for (const std::string& text : lane.refused_cuts) {
    if (text.rfind(kPrefix, 0) == 0)
      names.insert(text.substr(kPrefix.size(), text.find(':') - kPrefix.size()));
  }
  return names;
}

// Inputs on which hooks come and go as they fire.
std::set<std::string> withChangingHooks(const Case& c) {
  std::set<std::string> names;
  for (const HookSpec& hook : c.plan.hooks) {
    if (hook.action == HookAction::Remove || hook.action == HookAction::Register) {
      names.insert(fmt::format("in{}", hook.input));
    }
  }
  return names;
}

std::vector<HookTrace> userHooks(const std::vector<HookTrace>& log, const std::set<std::string>& left_out) {
  std::vector<HookTrace> hooks;
  for (const HookTrace& hook : log) {
    if (hook.kind != HookTrace::Kind::PieceBackward && left_out.count(hook.on) == 0) hooks.push_back(hook);
  }
  return hooks;
}

std::map<HookKey, std::vector<const HookTrace*>> byHook(const std::vector<HookTrace>& log) {
  std::map<HookKey, std::vector<const HookTrace*>> groups;
  for (const HookTrace& hook : log) groups[{kindName(hook.kind), hook.on}].push_back(&hook);
  return groups;
}

// `seam_arguments`: whether what hooks on seams were given is compared too.
void compareCounts(const std::vector<HookTrace>& expected, const std::vector<HookTrace>& got,
                   bool seam_arguments, Comparison& comparison) {
  auto a = byHook(expected);
  auto b = byHook(got);
  for (const auto& [key, fired] : b) a[key];
  for (const auto& [key, fired] : a) {
    const auto& other = b[key];
    comparison.count();
    if (fired.size() != other.size()) {
      comparison.differ(FailureKind::hook_count, key.first,
                        fmt::format("the {} hook on {} fired {} times, expected {}", key.first, key.second,
                                    other.size(), fired.size()));
      continue;
    }
    if (!seam_arguments && !hookedInput(key.second)) continue;
    for (size_t i = 0; i < fired.size(); ++i) {
      Comparison argument(comparison.profile());
      compareTensor(fired[i]->argument, other[i]->argument, true, FailureKind::hook_arg, argument);
      comparison.count(argument.comparisons());
      const Verdict verdict = argument.verdict();
      comparison.apart(verdict.distance());
      if (verdict.failed()) {
        // Wrong numbers, sizes or no gradient at all: the hook was given another gradient.
        comparison.differ(FailureKind::hook_arg, verdict.detail(),
                          fmt::format("the {} hook on {}: {}", key.first, key.second, verdict.message()),
                          verdict.distance());
      }
    }
  }
}

void compareTotalOrder(const std::vector<HookTrace>& expected, const std::vector<HookTrace>& got,
                       Comparison& comparison) {
  for (size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    comparison.count();
    if (expected[i].kind != got[i].kind || expected[i].on != got[i].on) {
      comparison.differ(
          FailureKind::hook_order, "strict",
          fmt::format("hook number {} to fire: expected {} on {}, got {} on {}", i,
                      kindName(expected[i].kind), expected[i].on, kindName(got[i].kind), got[i].on));
      return;
    }
  }
}

class HookOrder : public Oracle {
 public:
  explicit HookOrder(const OracleOptions& options) : strict_(options.strict) {}

  Verdict judge(const Case& c, const Trace& reference, const Trace& lane) const override {
    if (!anyHookFired(reference) && !anyHookFired(lane)) return Verdict::skip("not_applicable");
    const std::set<std::string> refused = refusedHooks(lane);
    std::optional<HookPromise> promise;
    if (!lane.pieces.empty()) promise.emplace(c, lane.pieces);
    Comparison comparison(numericProfile(*c.graph));
    bool gradients_differ = false;
    for (size_t k = 0; k < std::min(reference.runs.size(), lane.runs.size()) && !comparison.failed(); ++k) {
      const auto& expected = reference.runs[k].phases;
      const auto& got = lane.runs[k].phases;
      std::set<std::string> left_out = refused;
      for (size_t p = 0; p < std::min(expected.size(), got.size()) && !comparison.failed(); ++p) {
        if (expected[p].error && got[p].error && promise) {
          comparison.at(fmt::format("run {}, {}", k + 1, expected[p].name()));
          checkThrown(c, *promise, reference.runs[k], lane.runs[k], k, p, comparison);
        }
        if (expected[p].error || got[p].error) {
          // Which hooks had fired by then is for autograd's queue to say, and so is which are there from now
          // on.
          left_out.merge(withChangingHooks(c));
          continue;
        }
        // Hooks of a wrong gradient are wrong in its train; the oracle of gradients reports the cause.
        if (differs(expected[p], got[p], comparison.profile())) {
          gradients_differ = true;
          if (p == 0) break;
          continue;
        }
        comparison.at(fmt::format("run {}, {}", k + 1, expected[p].name()));
        const std::vector<HookTrace> reference_hooks = userHooks(expected[p].hooks, left_out);
        const std::vector<HookTrace> lane_hooks = userHooks(got[p].hooks, left_out);
        // In a second backward a gradient also comes through results that ops kept for themselves, and hooks
        // on the seam, which stand before the whole part, do not see that share.
        const bool second = got[p].kind == PhaseTrace::Kind::Double;
        compareCounts(reference_hooks, lane_hooks, !((promise || lane.compiled_whole) && second), comparison);
        if (promise && got[p].kind == PhaseTrace::Kind::Backward) {
          uint64_t pairs = 0;
          const CaseRun& run = c.runs[std::min(k, c.runs.size() - 1)];
          const auto breach = promise->check(run, lane.runs[k].executed, got[p].hooks, pairs);
          comparison.count(pairs);
          if (breach) comparison.differ(FailureKind::hook_order, breach->rule, breach->message);
        }
        if (strict_ && !comparison.failed()) compareTotalOrder(reference_hooks, lane_hooks, comparison);
      }
    }
    return comparison.verdict(gradients_differ ? "gradients_differ" : "hooks_refused");
  }

 private:
  static bool anyHookFired(const Trace& trace) {
    for (const RunTrace& run : trace.runs) {
      for (const PhaseTrace& phase : run.phases) {
        for (const HookTrace& hook : phase.hooks) {
          if (hook.kind != HookTrace::Kind::PieceBackward) return true;
        }
      }
    }
    return false;
  }

  // A hook threw: no earlier piece has run, and gradients that only later ones make are what they are in the
  // phase that is the same but for the throw.
  static void checkThrown(const Case& c, const HookPromise& promise, const RunTrace& expected,
                          const RunTrace& got, size_t k, size_t p, Comparison& comparison) {
    const CaseRun& run = c.runs[std::min(k, c.runs.size() - 1)];
    const PhaseTrace& thrown = got.phases[p];
    if (thrown.kind != PhaseTrace::Kind::Backward || thrown.hooks.empty()) return;
    uint64_t pairs = 0;
    const auto breach = promise.check(run, got.executed, thrown.hooks, pairs);
    comparison.count(pairs);
    if (breach) {
      comparison.differ(FailureKind::hook_order, breach->rule, breach->message);
      return;
    }
    const BackwardSpec& spec = run.backwards[static_cast<size_t>(thrown.backward)];
    const auto clean =
        std::find_if(expected.phases.begin(), expected.phases.end(), [&](const PhaseTrace& other) {
          return other.kind == PhaseTrace::Kind::Backward && !other.error &&
                 run.backwards[static_cast<size_t>(other.backward)] == spec;
        });
    if (clean == expected.phases.end()) return;
    const std::vector<size_t> complete = promise.completeAt(run, got.executed, thrown.hooks);
    for (const TensorTrace& gradient : thrown.gradients) {
      const auto input = hookedInput(gradient.path);
      if (!input || std::find(complete.begin(), complete.end(), *input) == complete.end()) continue;
      const auto whole = std::find_if(clean->gradients.begin(), clean->gradients.end(),
                                      [&](const TensorTrace& one) { return one.path == gradient.path; });
      if (whole == clean->gradients.end()) continue;
      Comparison one(comparison.profile());
      compareTensor(*whole, gradient, true, FailureKind::hook_arg, one);
      comparison.count(one.comparisons());
      if (one.failed()) {
        comparison.differ(FailureKind::hook_order, "incomplete_at_throw",
                          fmt::format("the gradient of {}, which later pieces make: {}", gradient.path,
                                      one.verdict().message()));
        return;
      }
    }
  }

  static bool differs(const PhaseTrace& expected, const PhaseTrace& got, const NumericProfile& profile) {
    Comparison comparison(profile);
    if (expected.kind == PhaseTrace::Kind::Forward) {
      compareForward(expected, got, Aliases::Ignore, comparison);
    } else {
      compareBackward(expected, got, comparison);
    }
    return comparison.failed();
  }

  bool strict_;
};

}  // namespace

std::unique_ptr<Oracle> makeHookOrder(const OracleOptions& options) {
  return std::make_unique<HookOrder>(options);
}

}  // namespace faultline
