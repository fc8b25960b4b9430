// What a CompiledGraph holds: parts over numbered registers, made by compile(), run by CompiledGraph::run.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "engine/runtime/runnable_part.h"
#include "engine/runtime/steps.h"
#include "faultline/graph_break.h"

namespace faultline {

struct PlacedPart {
  std::shared_ptr<const RunnablePart> part;
  std::vector<Register> inputs, outputs;
  std::vector<Register> last_used;  // of registers made in this piece: nobody reads them after this part
};

struct PlacedSegment {
  std::vector<PlacedPart> parts;
  std::vector<Register> inputs, outputs;
  std::vector<Register> last_used;  // nobody reads them after this segment
  // Makes its ops in their order, to be run again when a part throws; empty where that could be seen (writes,
  // random numbers, prints) or would be the same.
  std::function<std::shared_ptr<torch::jit::Graph>()> as_written;
};

struct PlacedPiece {
  std::vector<PlacedSegment> segments;
  std::vector<Register> outputs;
  std::vector<Register> last_used;  // nobody reads them after this piece
  std::vector<size_t> seams;        // that it makes, positions in Impl::seams
};

struct Seam {
  std::string name;
  Register at;
  size_t piece;         // that makes it
  std::string refusal;  // why it takes no hooks; empty: it does
  bool written;         // shares memory with what is written in place: no other object may stand for it
};

struct CompiledGraph::Impl {
  std::shared_ptr<Timeline> timeline = std::make_shared<Timeline>();
  std::vector<CompiledPiece> pieces;
  std::vector<PlacedPiece> placed;
  size_t registers = 0;  // graph inputs come first
  size_t graph_inputs = 0;
  std::vector<RunStep> steps;  // empty: the pieces, once each
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
  // `stack`: to work on, kept from piece to piece for its memory.
  compat::NodePtr runPiece(size_t k, std::vector<c10::IValue>& registers, torch::jit::Stack& stack);
  // `any_eager`: set where ops ran as written, and may have made nodes of their own.
  compat::NodePtr runSegment(const PlacedSegment& segment, std::vector<c10::IValue>& registers,
                             const std::shared_ptr<PieceRun>& run, torch::jit::Stack& stack, bool& any_eager);
  void gateSeams(size_t k, const compat::NodePtr& first, std::vector<c10::IValue>& registers);
  void runAsWritten(const PlacedSegment& segment, std::vector<c10::IValue>& registers);
};

}  // namespace faultline
