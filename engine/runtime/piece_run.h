// What the autograd nodes of one piece of one run share: how they say that the piece's backward has begun.
#pragma once
#include <atomic>
#include <memory>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include "faultline/timeline.h"

namespace faultline {

class PieceRun {
 public:
  // `forward`: the event of its forward.
  PieceRun(std::shared_ptr<Timeline> timeline, int piece, uint64_t forward)
      : timeline_(std::move(timeline)), piece_(piece), forward_(forward) {}

  // An event for the first node of the piece that runs in each backward pass; later ones only move its end.
  void backwardBegins();
  void backwardEnds() { timeline_->end(seq_); }
  int piece() const { return piece_; }

 private:
  std::shared_ptr<Timeline> timeline_;
  int piece_;
  uint64_t forward_;
  std::atomic<int> task_{-1};
  std::atomic<uint64_t> seq_{0};
};

// Says it for a node that is not ours: the first to run of an eager piece.
class BackwardBeginHook : public torch::autograd::FunctionPreHook {
 public:
  explicit BackwardBeginHook(std::shared_ptr<PieceRun> run) : run_(std::move(run)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& grads) override {
    run_->backwardBegins();
    return grads;
  }

 private:
  std::shared_ptr<PieceRun> run_;
};

}  // namespace faultline
