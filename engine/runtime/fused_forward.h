// Forwards of pieces that run one after another, as one program.
//
// Between them nothing happens that anybody could see: hooks fire in the backward. So the interpreter is
// entered once, and the autograd nodes are made afterwards, piece by piece. What differs is the time: code
// that runs once per piece is cold whenever it runs between the kernels of two pieces.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/core/ivalue.h>

#include "engine/runtime/placed.h"

namespace faultline {

class FusedForward {
 private:
  struct Program;

 public:
  // What a run gave and no part has taken yet.
  class Results {
   public:
    bool any() const { return made_by_ != nullptr; }
    bool goesOnWith(size_t piece) const {
      return any() && piece > made_by_->first_ && piece < made_by_->end_;
    }
    // By std::chrono::steady_clock, in nanoseconds.
    int64_t begin(size_t piece) const { return times_[piece - made_by_->first_]; }
    int64_t end(size_t piece) const { return times_[piece - made_by_->first_ + 1]; }
    // Of the next part in order: its inputs are replaced by its outputs, and its node given, as
    // RunnablePart::run does it. Nothing: what was run does not fit them, because of a dtype that only
    // running tells. Then it and all that follow are to run for themselves, and it is not tried again.
    std::optional<compat::NodePtr> give(const RunnablePart& part, torch::jit::Stack& stack,
                                        const std::shared_ptr<PieceRun>& piece_run);

   private:
    friend class FusedForward;
    const FusedForward* made_by_ = nullptr;
    const Program* program_ = nullptr;
    std::vector<c10::IValue> values_;  // of every part the outputs of its forward, one part after another
    size_t parts_ = 0, taken_ = 0;     // of those, given
    std::vector<int64_t> times_;       // the begin, then the end of each piece
  };

  // Pieces `first` up to `end`, for which fuseForwards says when. Keeps `placed`. Makes the program for the
  // inputs that are expected to require grad.
  FusedForward(const std::vector<PlacedPiece>& placed, size_t first, size_t end);
  ~FusedForward();

  bool has(size_t piece) const { return piece >= first_ && piece < end_; }
  // Nothing: the inputs are of a kind that has no program, or an op threw. Then each part is to run for
  // itself. Any number of threads at once.
  Results run(const std::vector<c10::IValue>& registers) const;

 private:
  struct Input {
    Register at;
    c10::TypePtr type;  // without what only one of its readers knows
  };
  // As RunnablePart's variants, for the inputs that require grad: the first ones that come.
  static constexpr size_t most_programs = 4;

  const Program* programFor(const InputMask& requires_grad) const;
  std::unique_ptr<const Program> makeProgram(const InputMask& requires_grad) const;

  const std::vector<PlacedPiece>& placed_;
  size_t first_, end_;
  std::vector<Input> inputs_;
  mutable std::array<std::atomic<const Program*>, most_programs> programs_{};
  mutable std::mutex adding_;
  mutable std::atomic<bool> dismissed_{false};
};

using FusedForwards = std::map<size_t, FusedForward>;  // by their first pieces

// Of pieces that run in the order of `run` and nothing between them, those that may share a forward: all
// their parts are compiled, and repeatable, since a forward that does not fit is run again part by part.
void fuseForwards(const std::vector<PlacedPiece>& placed, const std::vector<size_t>& run,
                  FusedForwards& fused);

}  // namespace faultline
