// Planted bugs: lanes that are wrong in one way. What they wrap is right, and the oracles know nothing of
// them.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/ir.h>

#include "engine/profile/apply.h"
#include "engine/support/check.h"
#include "oracles/exec/profile_passes.h"
#include "oracles/lane.h"
#include "tests/oracles/planted/break_bugs.h"
#include "tests/oracles/planted/profile_bugs.h"

namespace faultline::planted {

struct Bug {
  std::string name;                                  // "wrong_value"
  std::string lane;                                  // the lane it wraps
  std::string group;                                 // of the wrapped lane, as signatures show it
  std::string oracle;                                // that must catch it
  std::string signature;                             // with which; "<field>": of whatever field of a tensor
  std::function<Case(const Case&)> before;           // what the lane is given instead; may be empty
  std::function<void(const Case&, Trace&)> after;    // what is done to its trace; may be empty
  std::function<std::unique_ptr<Lane>()> make = {};  // the lane with a wrong part; empty: the lane itself
  std::vector<std::string> features =
      {};            // that cases are generated with, where the usual mix has them too rarely
  size_t nodes = 0;  // at least, and at most twice as many; 0: as usual
  bool matches(const std::string& seen) const {
    const size_t field = signature.find("<field>");
    if (field == std::string::npos) return seen == signature;
    for (const char* name : {"defined", "dtype", "device", "rank", "sizes", "strides", "requires_grad"}) {
      if (seen == signature.substr(0, field) + name) return true;
    }
    return false;
  }
  std::string laneName() const { return lane + "+" + name; }
};

using Kind = HookTrace::Kind;

template <class Change>
auto onPhase(PhaseTrace::Kind kind, size_t first_run, Change change) {
  return [=](const Case&, Trace& trace) {
    for (size_t k = first_run; k < trace.runs.size(); ++k) {
      for (PhaseTrace& phase : trace.runs[k].phases) {
        if (phase.kind == kind && !phase.error) change(phase);
      }
    }
  };
}

template <class Change>
auto onBackwardHooks(Change change) {
  return onPhase(PhaseTrace::Kind::Backward, 0, [=](PhaseTrace& phase) { change(phase.hooks); });
}

inline void renumber(std::vector<HookTrace>& hooks) {
  for (size_t i = 0; i < hooks.size(); ++i) hooks[i].seq = i;
}

inline bool isFloating(const TensorTrace& t) {
  return t.defined && c10::isFloatingType(t.dtype) && t.values.numel() > 0;
}

// One element, the last: an oracle that looks at the first only would miss it.
inline void spoilLast(TensorTrace& t) {
  at::Tensor flat = t.values.view({-1});
  at::Tensor last = flat[-1];
  last.copy_(last * 1.01 + 0.01);
}

inline void makeWrongValue(PhaseTrace& forward) {
  for (TensorTrace& t : forward.outputs) {
    if (isFloating(t)) return spoilLast(t);
  }
}

inline void forgetRequiresGrad(PhaseTrace& forward) {
  for (TensorTrace& t : forward.outputs) {
    if (t.requires_grad) {
      t.requires_grad = false;
      t.is_leaf = true;
      return;
    }
  }
}

inline void makeContiguous(PhaseTrace& forward) {
  for (TensorTrace& t : forward.outputs) {
    if (t.defined) t.strides = t.values.strides().vec();
  }
}

inline void doubleGradient(PhaseTrace& backward) {
  for (TensorTrace& t : backward.gradients) {
    if (isFloating(t)) t.values.mul_(2);
  }
}

inline void dropGradient(PhaseTrace& backward) {
  for (TensorTrace& t : backward.gradients) {
    if (!t.defined) continue;
    TensorTrace none;
    none.path = t.path;
    none.defined = false;
    t = none;
    return;
  }
}

inline void defineGradients(PhaseTrace& backward) {
  for (TensorTrace& t : backward.gradients) {
    if (t.defined) continue;
    t.defined = true;
    t.sizes = {1};
    t.strides = {1};
    t.values = at::zeros({1});
  }
}

inline void throwLater(const Case&, Trace& trace) {
  for (size_t k = 1; k < trace.runs.size(); ++k) {
    auto& phases = trace.runs[k].phases;
    PhaseTrace failed;
    failed.error = ErrorTrace{"RuntimeError", "view_of_leaf", "a view of a leaf Variable …"};
    phases = {failed};
  }
}

// A specialisation without a guard: what required grad in the first run is taken to do so in all.
inline Case withFlagsOfTheFirstRun(const Case& c) {
  Case stale = cloneCase(c);
  for (CaseRun& run : stale.runs) {
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      InputSpec& spec = run.inputs[i];
      const InputSpec& first = stale.runs[0].inputs[i];
      if (spec.kind != InputSpec::Kind::Tensor || first.kind != InputSpec::Kind::Tensor) continue;
      if (!c10::isFloatingType(spec.dtype) && !c10::isComplexType(spec.dtype)) continue;
      spec.requires_grad = first.requires_grad;
    }
  }
  return stale;
}

// The seam's copy instead of the seam: nothing shares storage any more.
inline void breakAliases(PhaseTrace& forward) {
  int fresh = 1000;
  for (TensorTrace& t : forward.outputs) {
    if (t.alias_class >= 0) t.alias_class = fresh++;
  }
}

inline void fireLate(std::vector<HookTrace>& hooks) {
  std::stable_partition(hooks.begin(), hooks.end(),
                        [](const HookTrace& h) { return h.kind == Kind::PieceBackward; });
  renumber(hooks);
}

inline void fireEarly(std::vector<HookTrace>& hooks) {
  std::stable_partition(hooks.begin(), hooks.end(),
                        [](const HookTrace& h) { return h.kind != Kind::PieceBackward; });
  renumber(hooks);
}

inline void fireTwice(std::vector<HookTrace>& hooks) {
  for (size_t i = 0; i < hooks.size(); ++i) {
    if (hooks[i].kind != Kind::Tensor) continue;
    const HookTrace again = hooks[i];
    hooks.insert(hooks.begin() + static_cast<std::ptrdiff_t>(i), again);
    renumber(hooks);
    return;
  }
}

inline void swapPieces(std::vector<HookTrace>& hooks) {
  std::vector<HookTrace*> pieces;
  for (HookTrace& h : hooks) {
    if (h.kind == Kind::PieceBackward) pieces.push_back(&h);
  }
  if (pieces.size() < 2) return;
  std::swap(pieces.front()->on, pieces.back()->on);
  std::swap(pieces.front()->execution, pieces.back()->execution);
}

inline void halveArguments(std::vector<HookTrace>& hooks) {
  for (HookTrace& h : hooks) {
    if (h.kind != Kind::PieceBackward && isFloating(h.argument)) h.argument.values.mul_(0.5);
  }
}

namespace profile_bugs {

inline void collect(torch::jit::Block* block, std::vector<Node*>& into) {
  for (Node* node : block->nodes()) {
    if (node->kind() == prim::profile) into.push_back(node);
    for (torch::jit::Block* inner : node->blocks()) collect(inner, into);
    if (node->hasAttribute(attr::Subgraph)) collect(node->g(attr::Subgraph)->block(), into);
  }
}

// What a pass does that wants one node per value: where there is a clone, the original goes.
inline void move(const std::shared_ptr<Graph>& graph) {
  std::vector<Node*> before;
  collect(graph->block(), before);
  propagateProfileNode(graph);
  std::vector<Node*> after;
  collect(graph->block(), after);
  if (after.size() == before.size()) return;
  for (Node* node : before) {
    node->output()->replaceAllUsesWith(node->input());
    node->destroy();
  }
  after.clear();
  collect(graph->block(), after);
  for (Node* node : after) node->removeAttribute(c10::Symbol::attr("faultline_clone"));
}

// The use at which the first operand of a join is read; of a value that is no join, nothing.
inline std::optional<Use> firstOperand(const torch::jit::Value* value) {
  while (value->node()->kind() == prim::profile) value = value->node()->input();
  Node* node = const_cast<Node*>(value->node());
  if (node->kind() == prim::If) return Use(node->blocks()[0]->return_node(), value->offset());
  if (node->kind() == prim::Loop) return Use(node, value->offset() + 2);
  if (node->kind() != prim::Param || value->offset() == 0) return std::nullopt;
  Node* owner = node->owningBlock()->owningNode();
  if (owner == nullptr || owner->kind() != prim::Loop) return std::nullopt;
  return Use(owner, value->offset() + 1);
}

// Where a join leaves requires_grad open, what is found first counts.
inline std::vector<ProfileLookup> firstFound(const Graph& graph, const std::vector<Use>& uses) {
  std::vector<ProfileLookup> lookups = engineProfilePasses().lookup(graph, uses);
  const ProfileIndex index(graph);
  for (size_t i = 0; i < uses.size(); ++i) {
    const auto operand = firstOperand(uses[i].user->input(uses[i].offset));
    if (operand && !lookups[i].requires_grad.known()) {
      lookups[i].requires_grad = index.lookup(*operand).requires_grad;
    }
  }
  return lookups;
}

// `Tensor` on a node of an arm that never ran, read as if it said something. Runs that enter such an arm are
// no runs that the profile speaks of: a law of its own has to see it.
inline void believeUnseen(ProfileLookup& lookup) {
  if (lookup.state != ProfileState::Unseen) return;
  lookup.type = c10::TensorType::get();
  lookup.defined.state = FieldState::Value;
  lookup.defined.value = true;
}

inline std::vector<ProfileLookup> unseenBelieved(const Graph& graph, const std::vector<Use>& uses) {
  std::vector<ProfileLookup> lookups = engineProfilePasses().lookup(graph, uses);
  for (ProfileLookup& lookup : lookups) believeUnseen(lookup);
  return lookups;
}

// As libtorch's own: subgraphs are not entered.
inline void removeAround(torch::jit::Block* block) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it;
    ++it;
    for (torch::jit::Block* inner : node->blocks()) removeAround(inner);
    if (node->kind() != prim::profile) continue;
    node->output()->replaceAllUsesWith(node->input());
    node->destroy();
  }
}

inline Result<SpecialisedProgram> applyUnguarded(const std::shared_ptr<Graph>& graph) {
  auto plan = planBreaks(*graph, BreakPolicy::none());
  if (!plan) return tl::make_unexpected(plan.error());
  const KnownGradients known = profile::knownGradients(*graph);
  ApplyReport report;
  auto compiled = compileSpecialised(graph, *plan, {known, Guard::None}, report);
  if (!compiled) return tl::make_unexpected(compiled.error());
  return SpecialisedProgram{[program = *compiled](torch::jit::Stack& stack) { program.run(stack); },
                            report.pruned};
}

// Specialised as it should be, but for a caller without grad mode.
inline Result<SpecialisedProgram> applyForAnyMode(const std::shared_ptr<Graph>& graph) {
  auto applied = applyProfile(graph);
  if (!applied) return tl::make_unexpected(applied.error());
  auto program = std::make_shared<AppliedProfile>(std::move(*applied));
  return SpecialisedProgram{[program](torch::jit::Stack& stack) {
                              const c10::AutoGradMode on(true);
                              program->run(stack);
                            },
                            program->report().pruned};
}

template <class Change>
auto removedLane(Change change) {
  return [=]() -> std::unique_ptr<Lane> {
    ProfilePasses passes = engineProfilePasses();
    change(passes);
    return makeRemovedLane(std::move(passes));
  };
}

template <class Change>
auto profiledLane(Change change) {
  return [=]() -> std::unique_ptr<Lane> {
    ProfilePasses passes = engineProfilePasses();
    change(passes);
    return makeProfiledLane(std::move(passes));
  };
}

}  // namespace profile_bugs

class PlantedLane : public Lane {
 public:
  explicit PlantedLane(const Bug& bug)
      : bug_(bug), right_(bug.make ? bug.make() : findLane(bug.lane)->make()) {}

  Trace execute(const Case& c, uint64_t seed) override {
    Trace trace = right_->execute(bug_.before ? bug_.before(c) : c, seed);
    if (bug_.after && trace.skip.empty()) bug_.after(c, trace);
    return trace;
  }

 private:
  const Bug& bug_;
  std::unique_ptr<Lane> right_;
};

constexpr auto kForward = PhaseTrace::Kind::Forward;
constexpr auto kBackward = PhaseTrace::Kind::Backward;

inline const std::vector<Bug>& bugs() {
  static const std::vector<Bug> table = {
      {"wrong_value",
       "engine.broken",
       "engine",
       "forward_equiv",
       "forward_equiv/engine/value",
       {},
       onPhase(kForward, 0, makeWrongValue)},
      {"forgotten_requires_grad",
       "engine.broken",
       "engine",
       "forward_equiv",
       "forward_equiv/engine/requires_grad",
       {},
       onPhase(kForward, 0, forgetRequiresGrad)},
      {"contiguous",
       "engine.stitched",
       "engine",
       "forward_equiv",
       "forward_equiv/engine/stride",
       {},
       onPhase(kForward, 0, makeContiguous)},
      {"doubled_gradient",
       "engine.broken",
       "engine",
       "gradient_equiv",
       "gradient_equiv/engine/grad",
       {},
       onPhase(kBackward, 0, doubleGradient)},
      {"dropped_gradient",
       "engine.broken",
       "engine",
       "gradient_equiv",
       "gradient_equiv/engine/undefined_grad",
       {},
       onPhase(kBackward, 0, dropGradient)},
      {"zero_for_undefined",
       "engine.stitched",
       "engine",
       "gradient_equiv",
       "gradient_equiv/engine/undefined_grad",
       {},
       onPhase(kBackward, 0, defineGradients)},
      {"throws_later",
       "reference",
       "stock",
       "run_equiv",
       "run_equiv/stock/throws/view_of_leaf",
       {},
       throwLater},
      {"stale_flags",
       "reference",
       "stock",
       "run_equiv",
       "run_equiv/stock/requires_grad",
       withFlagsOfTheFirstRun,
       {}},
      {"wrong_in_run_three",
       "engine.broken",
       "engine",
       "break_equiv",
       "break_equiv/engine/value",
       {},
       onPhase(kForward, 2, makeWrongValue)},
      {"copied_seam",
       "engine.stitched",
       "engine",
       "break_equiv",
       "break_equiv/engine/alias",
       {},
       onPhase(kForward, 0, breakAliases)},
      {"hooks_at_the_end",
       "engine.broken",
       "engine",
       "hook_order",
       "hook_order/engine/hook_order/parameter_late",
       {},
       onBackwardHooks(fireLate)},
      {"hooks_at_the_start",
       "engine.broken",
       "engine",
       "hook_order",
       "hook_order/engine/hook_order/parameter_early",
       {},
       onBackwardHooks(fireEarly)},
      {"hook_twice",
       "engine.broken",
       "engine",
       "hook_order",
       "hook_order/engine/hook_count/tensor",
       {},
       onBackwardHooks(fireTwice)},
      {"swapped_pieces",
       "engine.broken",
       "engine",
       "hook_order",
       "hook_order/engine/hook_order/piece_order",
       {},
       onBackwardHooks(swapPieces)},
      {"halved_argument",
       "engine.stitched",
       "engine",
       "hook_order",
       "hook_order/engine/hook_arg",
       {},
       onBackwardHooks(halveArguments)},
      {"hook_in_another_piece",
       "engine.broken",
       "engine",
       "hook_order",
       "hook_order/engine/hook_order/parameter_late",
       {},
       onBackwardHooks(break_bugs::fireInTheNextPiece)},
      {"seam_with_inside_uses",
       "engine.broken",
       "engine",
       "hook_order",
       "hook_order/engine/hook_arg",
       {},
       {},
       break_bugs::laneThat(break_bugs::hookAnySeam, break_bugs::planWithInsideUses),
       {"+hooks", "+breaks", "-loops", "-branches", "-subgraphs", "-inplace", "-no_grad"}},
      {"seam_view_taken_for_fresh", "engine.broken", "engine", "break_equiv", "break_equiv/engine/alias",
       break_bugs::withViewsCopied, break_bugs::forgetPieces},
      {"wrong_bucket",
       "engine.broken",
       "engine",
       "break_equiv",
       "break_equiv/engine/hook_order/wrong_bucket",
       {},
       {},
       break_bugs::laneThatPlans(break_bugs::planWithWrongBucket),
       {"+breaks"}},
      {"saved_tensors_freed",
       "engine.broken",
       "engine",
       "gradient_equiv",
       "gradient_equiv/engine/throws/second_backward",
       {},
       {},
       break_bugs::laneThat(break_bugs::freeSavedTensors)},
      {"output_without_reachability",
       "engine.broken",
       "engine",
       "forward_equiv",
       "forward_equiv/engine/requires_grad",
       {},
       onPhase(kForward, 0, break_bugs::spreadRequiresGrad)},
      {"dropped_cut",
       "engine.broken",
       "engine",
       "break_equiv",
       "break_equiv/engine/hook_order/dropped_cut",
       break_bugs::withoutLastCut,
       {}},
      {"draws_swapped",
       "engine.broken",
       "engine",
       "forward_equiv",
       "forward_equiv/engine/value",
       break_bugs::withDrawsSwapped,
       break_bugs::forgetPieces,
       {},
       // Two draws that may change places.
       {"+dropout", "-inplace", "-views", "-reductions", "-matrix", "-masks", "-lists", "-loops", "-no_grad",
        "-subgraphs", "-branches", "-detach"}},
      {"share_not_accumulated", "engine.broken", "engine", "gradient_equiv", "gradient_equiv/engine/grad",
       break_bugs::withOneShareLost, break_bugs::forgetPieces},
      {"unconjugated",
       "engine.broken",
       "engine",
       "gradient_equiv",
       "gradient_equiv/engine/grad",
       {},
       onPhase(kBackward, 0, break_bugs::forgetConjugates),
       {},
       // Complex tensors: one case in a hundred.
       {"+dtypes", "-mixed_grad", "-no_grad", "-detach", "-flips"}},
      {"moved_node",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/invalid_graph/not_idempotent",
       {},
       {},
       profile_bugs::removedLane([](ProfilePasses& p) { p.propagate = profile_bugs::move; })},
      {"first_found",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/unsound_profile/requires_grad",
       {},
       {},
       profile_bugs::removedLane([](ProfilePasses& p) { p.lookup = profile_bugs::firstFound; }),
       // Tensors whose requires_grad differs between what goes into a join: one use in a hundred cases.
       {"+loops", "+mixed_grad"}},
      {"unexecuted_arm_as_evidence",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/unsound_profile/unseen",
       {},
       {},
       profile_bugs::removedLane([](ProfilePasses& p) { p.lookup = profile_bugs::unseenBelieved; })},
      {"fact_across_a_write",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/unsound_profile/<field>",
       {},
       {},
       profile_bugs::removedLane(
           [](ProfilePasses& p) { p.lookup = profile_bugs::blindTo(profile_bugs::hideWrites); }),
       {"+inplace", "+views", "+aliasing", "+mixed_grad"}},
      {"fact_across_a_back_edge",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/unsound_profile/<field>",
       {},
       {},
       profile_bugs::removedLane([](ProfilePasses& p) { p.lookup = profile_bugs::noBackEdges; }),
       {"+loops", "+inplace", "+views", "+aliasing", "+mixed_grad"},
       40},
      {"fact_across_a_view_group",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/unsound_profile/requires_grad",
       {},
       {},
       profile_bugs::removedLane([](ProfilePasses& p) {
         p.lookup = profile_bugs::blindTo([](Graph& graph) { profile_bugs::separateViews(graph.block()); });
       }),
       {"+inplace", "+views", "+aliasing", "+mixed_grad"},
       40},
      {"zero_under_no_grad_believed",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/unsound_profile/requires_grad",
       {},
       {},
       profile_bugs::removedLane(
           [](ProfilePasses& p) { p.lookup = profile_bugs::blindTo(profile_bugs::believeNoGrad); })},
      {"clone_as_evidence",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/unsound_profile/answer_changed",
       {},
       {},
       profile_bugs::removedLane([](ProfilePasses& p) { p.lookup = profile_bugs::clonesTakenForEvidence; })},
      {"loop_keeps_its_beginning",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/unsound_profile/requires_grad",
       {},
       {},
       profile_bugs::removedLane([](ProfilePasses& p) { p.lookup = profile_bugs::loopsKeepTheirBeginning; }),
       {"+loops", "+mixed_grad"}},
      {"removal_skips_subgraphs",
       "engine.removed",
       "engine",
       "profile_laws",
       "profile_laws/engine/invalid_graph/left_behind",
       {},
       {},
       profile_bugs::removedLane(
           [](ProfilePasses& p) { p.remove = [](Graph& g) { profile_bugs::removeAround(g.block()); }; })},
      {"needed_gradient_pruned",
       "engine.profiled",
       "engine",
       "run_equiv",
       "run_equiv/engine/requires_grad",
       {},
       {},
       profile_bugs::profiledLane([](ProfilePasses& p) { p.apply = profile_bugs::applyUnguarded; })},
      {"guard_without_grad_mode",
       "engine.profiled",
       "engine",
       "run_equiv",
       "run_equiv/engine/requires_grad",
       {},
       {},
       profile_bugs::profiledLane([](ProfilePasses& p) { p.apply = profile_bugs::applyForAnyMode; })},
  };
  return table;
}

// As lanes; once.
inline void registerBugs() {
  static const bool once = [] {
    for (const Bug& bug : bugs()) {
      registerLane({bug.laneName(), bug.group, "planted: " + bug.name,
                    [&bug]() -> std::unique_ptr<Lane> { return std::make_unique<PlantedLane>(bug); }});
    }
    return true;
  }();
  (void)once;
}

}  // namespace faultline::planted
