// The graph-break compiler, in its two forms: its own runtime, and the stitched graph in the stock
// interpreter.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "faultline/graph_break.h"
#include "faultline/ir.h"
#include "generators/generate/generate.h"
#include "oracles/exec/interpreted.h"
#include "oracles/exec/lanes.h"
#include "oracles/exec/planner.h"

namespace faultline {
namespace {

// Pieces whose backward began since it was last asked, read off the compiled graph's timeline.
class BackwardBeginnings {
 public:
  // Right after a forward on a timeline that was empty before.
  explicit BackwardBeginnings(const CompiledGraph& compiled) : compiled_(&compiled) { (*this)(); }
  std::vector<HookLog::Beginning> operator()() {
    std::vector<HookLog::Beginning> pieces;
    for (const TimelineEvent& event : compiled_->timeline().events()) {
      if (event.seq < next_) continue;
      next_ = event.seq + 1;
      if (event.what == TimelineEvent::What::Forward) {
        executions_.emplace(event.seq, static_cast<int>(executed_.size()));
        executed_.push_back(event.piece);
      } else if (event.what == TimelineEvent::What::Backward) {
        // A constant that a program wrote may lead on to nodes of an earlier run: they keep another order.
        if (const auto of = executions_.find(event.forward); of != executions_.end()) {
          pieces.push_back({event.piece, of->second});
        }
      }
    }
    return pieces;
  }
  const std::vector<int>& executed() const { return executed_; }

 private:
  const CompiledGraph* compiled_;
  uint64_t next_ = 0;
  std::map<uint64_t, int> executions_;  // by the event of the forward
  std::vector<int> executed_;
};

// Constants, what only packs values up or takes them apart, and switches of grad mode are no ops.
bool isCounted(const torch::jit::Node& node) {
  namespace prim = torch::jit::prim;
  static const std::set<c10::Symbol> left_out = {prim::Constant,
                                                 prim::ListConstruct,
                                                 prim::ListUnpack,
                                                 prim::TupleConstruct,
                                                 prim::TupleUnpack,
                                                 prim::TupleIndex,
                                                 prim::TupleSlice,
                                                 prim::DictConstruct,
                                                 prim::unchecked_cast,
                                                 prim::Uninitialized,
                                                 c10::Symbol::fromQualString("aten::set_grad_enabled"),
                                                 c10::Symbol::fromQualString("aten::is_grad_enabled")};
  return left_out.count(node.kind()) == 0;
}

uint64_t opsWithBodies(const torch::jit::Node& node) {
  uint64_t ops = isCounted(node) ? 1 : 0;
  for (const torch::jit::Block* block : node.blocks()) {
    for (const torch::jit::Node* inner : block->nodes()) ops += opsWithBodies(*inner);
  }
  return ops;
}

// How many ops of a program that can be differentiated run in parts that were differentiated ahead of time:
// "compiled" of the ops that pieces are rows of, where an If or a Loop is one; "compiled_with_bodies" of
// those and all that stand in their blocks.
void countCompiledOps(const torch::jit::Graph& graph, const CompiledGraph& compiled, Trace& trace) {
  const NodeNames names(graph);
  ShareTrace top_level{"compiled"}, all{"compiled_with_bodies"};
  for (const CompiledPiece& piece : compiled.pieces()) {
    for (const PiecePart& part : piece.parts) {
      for (const std::string& op : part.ops) {
        const torch::jit::Node* node = names.find(op);
        if (node == nullptr) continue;
        const uint64_t one = isCounted(*node) ? 1 : 0, with_bodies = opsWithBodies(*node);
        top_level.of += one;
        all.of += with_bodies;
        if (!part.compiled) continue;
        top_level.hits += one;
        all.hits += with_bodies;
      }
    }
  }
  trace.shares.push_back(top_level);
  trace.shares.push_back(all);
}

// How many plans refuse a cut for each reason, and cut inside blocks.
void countShares(const BreakPlan& plan, Trace& trace) {
  static const std::vector<std::string> codes = {
#define FAULTLINE_BREAK(code, sentence) #code,
#include "engine/graph_break/breaks.def"
#undef FAULTLINE_BREAK
  };
  for (const std::string& code : codes) {
    const bool any = std::any_of(plan.refused.begin(), plan.refused.end(),
                                 [&](const RefusedCut& cut) { return cut.code == code; });
    trace.shares.push_back({"refused:" + code, any ? 1u : 0u, 1});
  }
  trace.shares.push_back({"pieces_inside_blocks", plan.opened.empty() ? 0u : 1u, 1});
}

// Nothing where a name is no input's.
std::vector<BucketTrace> tracedBuckets(const torch::jit::Graph& graph, const BreakPlan& plan) {
  std::vector<BucketTrace> buckets;
  for (const PlannedBucket& planned : plan.buckets) {
    BucketTrace bucket{{}, planned.bytes, static_cast<int>(planned.piece)};
    for (const std::string& name : planned.parameters) {
      for (const torch::jit::Value* input : graph.inputs()) {
        if (input->debugName() == name || (input->hasDebugName() && input->debugNameBase() == name)) {
          bucket.inputs.push_back(input->offset());
        }
      }
    }
    if (bucket.inputs.size() != planned.parameters.size()) return {};
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

// What both forms need: the plan of the case carried out. nullopt with Trace::skip set when it cannot be.
std::optional<CompiledGraph> compileCase(const Case& c, const Planner& planner, PreparedCase& prepared,
                                         Trace& trace) {
  auto policy = readBreakPolicy(c, prepared);
  if (!policy) {
    trace.skip = "plan_unsupported";
    return std::nullopt;
  }
  settleTypes(*prepared.graph, c.runs);
  auto plan = planner(*prepared.graph, *policy);
  if (!plan) {
    trace.skip = "plan_refused";
    return std::nullopt;
  }
  for (const RefusedCut& cut : plan->refused) trace.refused_cuts.push_back(cut.at + ": " + cut.reason);
  trace.buckets = tracedBuckets(*prepared.graph, *plan);
  countShares(*plan, trace);
  CompileOptions options;
  options.share_equal_parts = true;
  auto compiled = compile(prepared.graph, *plan, options);
  if (!compiled) {
    trace.skip = "compile_refused";
    return std::nullopt;
  }
  for (const CompiledPiece& piece : compiled->pieces()) {
    trace.pieces.push_back({piece.ops, piece.kind == CompiledPiece::Kind::Compiled, piece.reason});
  }
  return std::move(*compiled);
}

// Without a hook that changes what comes after it the case is another one.
void refuseHook(const SeamHook& hook, Trace& trace) {
  if (hook.action == HookAction::Throw || hook.action == HookAction::Replace) trace.skip = "hook_refused";
}

class BrokenProgram : public LaneProgram {
 public:
  BrokenProgram(CompiledGraph compiled, PreparedCase& prepared, Trace& trace)
      : compiled_(std::move(compiled)) {
    const NodeNames names(*prepared.graph);
    for (const SeamHook& hook : prepared.seam_hooks) {
      const std::string name = names.of(hook.producer);
      // The compiled graph outlives a run, its hooks too: they report to the run at hand.
      auto done = compiled_.onSeam(name, [this, hook](const at::Tensor& grad) { return fire(hook, grad); });
      if (!done) {
        refuseHook(hook, trace);
        trace.refused_cuts.push_back(fmt::format("hook {}: {}", hook.seam, done.error().message));
      } else if (hook.kind != HookKind::Tensor && hook.kind != HookKind::BackwardEnd) {
        on_values_.emplace_back(hook, name);
      }
    }
  }

  void run(torch::jit::Stack& stack) override {
    compiled_.timeline().clear();
    compiled_.run(stack);
  }

  void afterForward(HookSite& site) override {
    for (const auto& [hook, name] : on_values_) {
      for (const at::Tensor& value : compiled_.seamValues(name)) {
        installHook(hook.kind, hook.action, hook.seam, value, site,
                    site.seamAct(hook.kind, hook.action, hook.seam));
      }
    }
    site_ = &site;
    BackwardBeginnings beginnings(compiled_);
    site.executed = beginnings.executed();
    site.log->setPieceSource(std::move(beginnings));
  }

 private:
  at::Tensor fire(const SeamHook& hook, const at::Tensor& grad) {
    if (hook.kind != HookKind::Tensor && hook.kind != HookKind::BackwardEnd) return {};
    const std::shared_ptr<HookAct> act = site_->seamAct(hook.kind, hook.action, hook.seam);
    if (hook.kind == HookKind::Tensor) return act->fire(grad);
    queueEnd(act, at::Tensor());
    return {};
  }

  CompiledGraph compiled_;
  HookSite* site_ = nullptr;  // of the run at hand, whose backwards come before the next run
  std::vector<std::pair<SeamHook, std::string>> on_values_;  // and what the compiled graph calls the seam
};

class BrokenLane : public ProgramLane {
 public:
  explicit BrokenLane(Planner planner) : ProgramLane("engine.broken"), planner_(std::move(planner)) {}

 protected:
  std::unique_ptr<LaneProgram> prepare(const Case& c, PreparedCase& prepared, Trace& trace) override {
    auto compiled = compileCase(c, planner_, prepared, trace);
    if (!compiled) return nullptr;
    if (caseTraits(c).count("differentiable") != 0) countCompiledOps(*prepared.graph, *compiled, trace);
    return std::make_unique<BrokenProgram>(std::move(*compiled), prepared, trace);
  }

 private:
  Planner planner_;
};

class StitchedProgram : public InterpretedProgram {
 public:
  explicit StitchedProgram(std::shared_ptr<torch::jit::Graph> graph)
      : InterpretedProgram(graph), graph_(std::move(graph)) {}
  void describe(Trace& trace) override { trace.graph_text = writeGraph(*graph_); }

 private:
  std::shared_ptr<torch::jit::Graph> graph_;
};

class StitchedLane : public ProgramLane {
 public:
  StitchedLane() : ProgramLane("engine.stitched") {}

 protected:
  std::unique_ptr<LaneProgram> prepare(const Case& c, PreparedCase& prepared, Trace& trace) override {
    auto compiled = compileCase(c, planBreaks, prepared, trace);
    if (!compiled) return nullptr;
    for (const SeamHook& hook : prepared.seam_hooks) {
      refuseHook(hook, trace);
      trace.refused_cuts.push_back(fmt::format("hook {}: a stitched graph has no hooks on seams", hook.seam));
    }
    return std::make_unique<StitchedProgram>(compiled->stitchedGraph());
  }
};

}  // namespace

std::unique_ptr<Lane> makeBrokenLane() { return makeBrokenLane(planBreaks); }
std::unique_ptr<Lane> makeBrokenLane(Planner planner) {
  return std::make_unique<BrokenLane>(std::move(planner));
}
std::unique_ptr<Lane> makeStitchedLane() { return std::make_unique<StitchedLane>(); }

}  // namespace faultline
