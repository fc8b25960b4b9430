// The graph-break compiler with one of its rules broken: as programs that are compiled another way, or that
// do to a compiled graph what it should have refused or kept from.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "faultline/graph_break.h"
#include "faultline/ir.h"
#include "oracles/exec/execute.h"
#include "oracles/exec/planner.h"
#include "oracles/trace.h"

namespace faultline::planted::break_bugs {

// What is done to a compiled graph after each of its runs.
using AfterRun = void (*)(const CompiledGraph&, const PreparedCase&, HookSite&);

class Program : public LaneProgram {
 public:
  Program(CompiledGraph compiled, const PreparedCase& prepared, AfterRun after_run)
      : compiled_(std::move(compiled)), prepared_(prepared), after_run_(after_run) {}
  void run(torch::jit::Stack& stack) override { compiled_.run(stack); }
  void afterForward(HookSite& site) override { after_run_(compiled_, prepared_, site); }

 private:
  CompiledGraph compiled_;
  PreparedCase prepared_;
  AfterRun after_run_;
};

class BrokenRuleLane : public ProgramLane {
 public:
  explicit BrokenRuleLane(AfterRun after_run, Planner planner = planBreaks)
      : ProgramLane("engine.broken"), after_run_(after_run), planner_(std::move(planner)) {}

 protected:
  std::unique_ptr<LaneProgram> prepare(const Case& c, PreparedCase& prepared, Trace& trace) override {
    auto policy = readBreakPolicy(c, prepared);
    if (!policy) {
      trace.skip = "plan_unsupported";
      return nullptr;
    }
    settleTypes(*prepared.graph, c.runs);
    auto plan = planner_(*prepared.graph, *policy);
    if (!plan) {
      trace.skip = "plan_refused";
      return nullptr;
    }
    auto compiled = compile(prepared.graph, *plan);
    if (!compiled) {
      trace.skip = "compile_refused";
      return nullptr;
    }
    return std::make_unique<Program>(std::move(*compiled), prepared, after_run_);
  }

 private:
  AfterRun after_run_;
  Planner planner_;
};

inline auto laneThat(AfterRun after_run, Planner planner = planBreaks) {
  return [=]() -> std::unique_ptr<Lane> { return std::make_unique<BrokenRuleLane>(after_run, planner); };
}

// The engine's own lane with a planner that is wrong.
inline auto laneThatPlans(Planner planner) {
  return [=]() -> std::unique_ptr<Lane> { return makeBrokenLane(planner); };
}

// A piece goes on until its seam has a use in it.
inline Result<BreakPlan> planWithInsideUses(const Graph& graph, const BreakPolicy& policy) {
  if (policy.kind() != BreakPolicy::Kind::After) return planBreaks(graph, policy);
  const NodeNames names(graph);
  std::vector<std::string> later;
  for (const std::string& name : policy.names()) {
    const Node* first = nullptr;
    for (const Value* output : names.find(name)->outputs()) {
      for (const torch::jit::Use& use : output->uses()) {
        const bool sibling = use.user->owningBlock() == names.find(name)->owningBlock();
        const bool op = use.user->kind() != torch::jit::prim::Return;
        if (sibling && op && (first == nullptr || use.user->isBefore(first))) first = use.user;
      }
    }
    later.push_back(first == nullptr ? name : names.of(first));
  }
  return planBreaks(graph, BreakPolicy::after(later));
}

// A gradient goes out with the bucket before its own.
inline Result<BreakPlan> planWithWrongBucket(const Graph& graph, const BreakPolicy& policy) {
  auto plan = planBreaks(graph, policy);
  if (!plan || plan->buckets.size() < 2) return plan;
  PlannedBucket &from = plan->buckets[1], &into = plan->buckets[0];
  int64_t bytes = 0;
  for (const Value* input : graph.inputs()) {
    if (input->debugName() == from.parameters.front()) {
      const auto type = input->type()->expect<c10::TensorType>();
      bytes = static_cast<int64_t>(*type->numel() * c10::elementSize(*type->scalarType()));
    }
  }
  into.parameters.push_back(from.parameters.front());
  from.parameters.erase(from.parameters.begin());
  into.bytes += bytes;
  from.bytes -= bytes;
  if (from.parameters.empty()) plan->buckets.erase(plan->buckets.begin() + 1);
  return plan;
}

// Hooks on all seams, also on those with uses inside the piece that makes them.
inline void hookAnySeam(const CompiledGraph& compiled, const PreparedCase& prepared, HookSite& site) {
  const NodeNames names(*prepared.graph);
  for (const SeamHook& hook : prepared.seam_hooks) {
    const at::Tensor live = compiled.seam(names.of(hook.producer));
    if (live.defined()) {
      installHook(hook.kind, hook.action, hook.seam, live, site,
                  site.seamAct(hook.kind, hook.action, hook.seam));
    }
  }
}

inline void freeSavedTensors(const CompiledGraph& compiled, const PreparedCase&, HookSite&) {
  for (size_t k = 0; k < compiled.pieces().size(); ++k) {
    if (auto* node = compiled.pieceNode(k)) node->release_variables();
  }
}

// The last of the names after which the plan cuts.
inline Case withoutLastCut(const Case& c) {
  Case fewer = cloneCase(c);
  const std::string& breaks = c.plan.breaks;
  if (breaks.rfind("after ", 0) != 0) return fewer;
  const size_t last = breaks.rfind(' ');
  fewer.plan.breaks = last == 5 ? "none" : breaks.substr(0, last);
  return fewer;
}

inline bool isDraw(const torch::jit::Node* node) {
  return node->kind() == c10::aten::dropout || node->kind() == c10::aten::rand_like;
}

inline bool mayMoveUp(const torch::jit::Node* node, const torch::jit::Node* before) {
  return std::all_of(node->inputs().begin(), node->inputs().end(), [&](const Value* value) {
    return value->node()->kind() == torch::jit::prim::Param || value->node()->isBefore(before);
  });
}

inline bool mayMoveDown(const torch::jit::Node* node, const torch::jit::Node* behind) {
  const auto& uses = node->output()->uses();
  return std::all_of(uses.begin(), uses.end(),
                     [&](const torch::jit::Use& use) { return use.user->isAfter(behind); });
}

// Two draws change their order.
inline Case withDrawsSwapped(const Case& c) {
  Case swapped = cloneCase(c);
  std::vector<torch::jit::Node*> draws;
  for (torch::jit::Node* node : swapped.graph->nodes()) {
    if (isDraw(node)) draws.push_back(node);
  }
  for (size_t i = 0; i < draws.size(); ++i) {
    for (size_t k = i + 1; k < draws.size(); ++k) {
      if (mayMoveUp(draws[k], draws[i])) {
        draws[k]->moveBefore(draws[i]);
      } else if (mayMoveDown(draws[i], draws[k])) {
        draws[i]->moveAfter(draws[k]);
      } else {
        continue;
      }
      return swapped;
    }
  }
  return swapped;
}

// A view is cut from what it shares memory with.
inline Case withViewsCopied(const Case& c) {
  Case copied = cloneCase(c);
  std::vector<torch::jit::Node*> views;
  for (torch::jit::Node* node : copied.graph->nodes()) {
    const auto* schema = node->maybeSchema();
    if (schema == nullptr || schema->is_mutable() || schema->returns().size() != 1) continue;
    const auto* alias = schema->returns()[0].alias_info();
    if (alias != nullptr && node->output()->type()->kind() == c10::TypeKind::TensorType)
      views.push_back(node);
  }
  for (torch::jit::Node* view : views) {
    torch::jit::WithInsertPoint behind(view->next());
    torch::jit::Value* copy = copied.graph->insert(c10::aten::clone, {view->output()});
    copy->setType(view->output()->type());
    view->output()->replaceAllUsesAfterNodeWith(copy->node(), copy);
  }
  return copied;
}

// One use of an input that has several no longer gives it its gradient.
inline Case withOneShareLost(const Case& c) {
  Case lost = cloneCase(c);
  for (torch::jit::Value* input : lost.graph->inputs()) {
    if (input->type()->kind() != c10::TypeKind::TensorType) continue;
    std::vector<torch::jit::Use> uses;
    for (const torch::jit::Use& use : input->uses()) {
      const auto* schema = use.user->maybeSchema();
      const bool plain = use.user->owningBlock() == lost.graph->block() && schema && !schema->is_mutable();
      if (plain && use.user->kind().is_aten() && use.user->kind() != c10::aten::detach) uses.push_back(use);
    }
    if (uses.size() < 2) continue;
    torch::jit::WithInsertPoint before(uses.back().user);
    torch::jit::Value* cut = lost.graph->insert(c10::aten::detach, {input});
    cut->setType(input->type());
    uses.back().user->replaceInput(uses.back().offset, cut);
    return lost;
  }
  return lost;
}

// Of a program with other ops than the case's.
inline void forgetPieces(const Case&, Trace& trace) { trace.pieces.clear(); }

// As if every result of a piece depended on all that requires grad.
inline void spreadRequiresGrad(PhaseTrace& forward) {
  const bool any = std::any_of(forward.outputs.begin(), forward.outputs.end(),
                               [](const TensorTrace& t) { return t.requires_grad; });
  for (TensorTrace& t : forward.outputs) {
    if (!any || !t.defined || !c10::isFloatingType(t.dtype)) continue;
    t.is_leaf = t.is_leaf && t.requires_grad;
    t.requires_grad = true;
  }
}

inline void forgetConjugates(PhaseTrace& backward) {
  for (TensorTrace& t : backward.gradients) {
    if (t.defined && c10::isComplexType(t.dtype)) t.values = t.values.conj().resolve_conj();
  }
}

// One hook of a parameter fires in the piece that comes after its own in the backward.
inline void fireInTheNextPiece(std::vector<HookTrace>& hooks) {
  using Kind = HookTrace::Kind;
  for (size_t i = 0; i < hooks.size(); ++i) {
    if (hooks[i].kind != Kind::Tensor && hooks[i].kind != Kind::PostAccumulate) continue;
    for (size_t k = i + 1; k < hooks.size(); ++k) {
      if (hooks[k].kind != Kind::PieceBackward) continue;
      std::rotate(hooks.begin() + static_cast<std::ptrdiff_t>(i),
                  hooks.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  hooks.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      for (size_t n = 0; n < hooks.size(); ++n) hooks[n].seq = n;
      return;
    }
  }
}

}  // namespace faultline::planted::break_bugs
