// The graph-break compiler, in its two forms: its own runtime, and the stitched graph in the stock interpreter.
#include <fmt/format.h>
#include <torch/csrc/autograd/function_hook.h>

#include "faultline/graph_break.h"
#include "faultline/ir.h"
#include "oracles/exec/interpreted.h"
#include "oracles/exec/lanes.h"

namespace faultline {
namespace {

class LogPiece : public torch::autograd::FunctionPreHook {
 public:
  LogPiece(std::shared_ptr<HookLog> log, int piece) : log_(std::move(log)), piece_(piece) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    log_->pieceBackward(piece_);
    return grads;
  }

 private:
  std::shared_ptr<HookLog> log_;
  int piece_;
};

// What both forms need: the plan of the case carried out. nullopt with Trace::skip set when it cannot be.
std::optional<CompiledGraph> compileCase(const Case& c, PreparedCase& prepared, Trace& trace) {
  auto policy = readBreakPolicy(c, prepared);
  if (!policy) {
    trace.skip = "plan_unsupported";
    return std::nullopt;
  }
  settleTypes(*prepared.graph, c.runs);
  auto plan = planBreaks(*prepared.graph, *policy);
  if (!plan) {
    trace.skip = "plan_refused";
    return std::nullopt;
  }
  for (const RefusedCut& cut : plan->refused) trace.refused_cuts.push_back(cut.at + ": " + cut.reason);
  auto compiled = compile(prepared.graph, *plan);
  if (!compiled) {
    trace.skip = "compile_refused";
    return std::nullopt;
  }
  for (const CompiledPiece& piece : compiled->pieces()) {
    trace.pieces.push_back({piece.ops, piece.kind == CompiledPiece::Kind::Compiled, piece.reason});
  }
  return std::move(*compiled);
}

class BrokenProgram : public Program {
 public:
  BrokenProgram(CompiledGraph compiled, PreparedCase& prepared, Trace& trace) : compiled_(std::move(compiled)) {
    const NodeNames names(*prepared.graph);
    for (const SeamHook& hook : prepared.seam_hooks) {
      const std::string name = names.of(hook.producer);
      // The compiled graph outlives a run, its hooks too: they report to the run at hand.
      auto done = compiled_.onSeam(name, [this, hook](const at::Tensor& grad) {
        if (log_ && hook.kind == HookKind::Tensor) log_->add(HookTrace::Kind::Tensor, hook.seam, grad);
        return at::Tensor();
      });
      if (!done) {
        trace.refused_cuts.push_back(fmt::format("hook {}: {}", hook.seam, done.error().message));
      } else if (hook.kind == HookKind::RetainGrad) {
        retained_.emplace_back(hook.seam, name);
      }
    }
  }

  void run(torch::jit::Stack& stack) override { compiled_.run(stack); }

  void afterForward(HookSite& site) override {
    log_ = site.log;
    for (const auto& [on, name] : retained_) {
      installHook(HookKind::RetainGrad, on, compiled_.seam(name), site);
    }
    for (size_t k = 0; k < compiled_.pieces().size(); ++k) {
      if (torch::autograd::Node* node = compiled_.pieceNode(k)) {
        node->add_pre_hook(std::make_unique<LogPiece>(site.log, static_cast<int>(k)));
      }
    }
  }

 private:
  CompiledGraph compiled_;
  std::shared_ptr<HookLog> log_;
  std::vector<std::pair<std::string, std::string>> retained_;  // as logged, as the compiled graph calls it
};

class BrokenLane : public ProgramLane {
 public:
  BrokenLane() : ProgramLane("engine.broken") {}

 protected:
  std::unique_ptr<Program> prepare(const Case& c, PreparedCase& prepared, Trace& trace) override {
    auto compiled = compileCase(c, prepared, trace);
    if (!compiled) return nullptr;
    return std::make_unique<BrokenProgram>(std::move(*compiled), prepared, trace);
  }
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
  std::unique_ptr<Program> prepare(const Case& c, PreparedCase& prepared, Trace& trace) override {
    auto compiled = compileCase(c, prepared, trace);
    if (!compiled) return nullptr;
    for (const SeamHook& hook : prepared.seam_hooks) {
      trace.refused_cuts.push_back(fmt::format("hook {}: a stitched graph has no hooks on seams", hook.seam));
    }
    return std::make_unique<StitchedProgram>(compiled->stitchedGraph());
  }
};

}  // namespace

std::unique_ptr<Lane> makeBrokenLane() { return std::make_unique<BrokenLane>(); }
std::unique_ptr<Lane> makeStitchedLane() { return std::make_unique<StitchedLane>(); }

}  // namespace faultline
