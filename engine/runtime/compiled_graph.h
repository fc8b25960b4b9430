// What a CompiledGraph holds: parts over numbered registers, made by compile(), run by CompiledGraph::run.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "engine/runtime/fused_forward.h"
#include "engine/runtime/placed.h"
#include "engine/runtime/steps.h"
#include "faultline/graph_break.h"

namespace faultline {

struct Seam {
  std::string name;
  Register at;
  size_t piece;         // that makes it
  std::string refusal;  // why it takes no hooks; empty: it does
  bool irreplaceable;   // no other object may stand for it
};

struct CompiledGraph::Impl {
  std::shared_ptr<Timeline> timeline = std::make_shared<Timeline>();
  std::vector<CompiledPiece> pieces;
  std::vector<PlacedPiece> placed;
  size_t registers = 0;  // graph inputs come first
  size_t graph_inputs = 0;
  std::vector<RunStep> steps;  // empty: the pieces, once each
  FusedForwards fused;
  std::vector<RunValue> outputs;
  std::vector<Seam> seams;  // by name
  const Seam* findSeam(const std::string& name) const;
  bool writes = false;  // in place, anywhere
  std::function<std::shared_ptr<torch::jit::Graph>()> stitch;

  void run(torch::jit::Stack& stack);

  struct SeamHookEntry {
    const Seam* seam;
    SeamHook hook;
  };
  std::mutex hooks_mutex;
  std::shared_ptr<const std::vector<SeamHookEntry>> hooks;  // replaced, never changed: runs keep theirs

  // The last run of each thread that ran.
  struct LastRun {
    // Whoever holds a node holds what it leads to. Eager frees nodes as soon as no tensor hangs on them, and
    // a program can tell: a leaf whose shape is changed in place after that gets a new accumulator.
    std::vector<compat::WeakNodePtr> nodes;
    std::vector<at::Tensor> seams;  // as Impl::seams, of the last time; undefined: no tensor
    std::vector<std::pair<size_t, at::Tensor>> earlier;  // what seams of pieces that ran before were
  };
  std::mutex last_runs_mutex;
  std::unordered_map<std::thread::id, std::shared_ptr<const LastRun>> last_runs;
  std::shared_ptr<const LastRun> lastRun();
  void setLastRun(std::shared_ptr<const LastRun> run);

  std::atomic<size_t> reruns{
      0};  // segments that threw compiled and did not throw as written: expected to stay 0

 private:
  struct Running;
  void runPlaced(size_t k, Running& running);
  compat::NodePtr runPiece(size_t k, Running& running);
  // `any_eager`: set where ops ran as written, and may have made nodes of their own.
  compat::NodePtr runSegment(const PlacedSegment& segment, Running& running,
                             const std::shared_ptr<PieceRun>& run, bool& any_eager);
  compat::NodePtr runPart(const RunnablePart& part, Running& running, const std::shared_ptr<PieceRun>& run);
  void runFusedForwardAt(size_t k, Running& running);
  void gateSeams(size_t k, const compat::NodePtr& first, std::vector<c10::IValue>& registers);
  void runAsWritten(const PlacedSegment& segment, std::vector<c10::IValue>& registers);
};

}  // namespace faultline
