// A part made ready to run: its ops as written, and, where it is compiled, differentiated code per set of
// inputs that require grad.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include <ATen/core/stack.h>

#include "engine/runtime/piece_node.h"

namespace faultline {

// What a part does when other inputs require grad than expected.
enum class Guard {
  Variants,  // it is differentiated for these too, on their first run
  Flags,     // its ops run as written; but as Variants where only inputs differ of which nothing was known
  None,      // it runs all the same, and is wrong: for tests that show what guards are for
};

class RunnablePart {
 public:
  // `graph`: the part as a graph of its own. `expected`: which inputs will require grad as far as types say;
  // that variant is made now. `reason` gets why it cannot be, and the part is eager then. `open`: the inputs
  // of which nothing is known, so that Guard::Flags has nothing to hold against them; empty: none.
  RunnablePart(std::shared_ptr<torch::jit::Graph> graph, bool compile, const InputMask& expected,
               Guard guard = Guard::Variants, const InputMask& open = {});
  ~RunnablePart();

  bool compiled() const { return compiled_; }
  const std::string& reason() const { return reason_; }  // of an autodiff that refused
  const std::shared_ptr<torch::jit::Graph>& graph() const { return graph_; }
  const InputMask& expected() const { return expected_; }
  Guard guard() const { return guard_; }
  const InputMask& open() const { return open_; }
  // nullptr: not compiled, or nothing is expected to require grad.
  const PartVariant* expectedVariant() const { return expected_variant_.get(); }

  // Replaces the inputs on the stack by the outputs. Returns the autograd node, or nullptr where none was
  // made. Any number of threads at once.
  compat::NodePtr run(torch::jit::Stack& stack, const std::shared_ptr<PieceRun>& piece_run) const;

  // What differentiated code needs of the thread.
  static bool modesFit();
  // Nor can it take a view made in no-grad mode of what requires grad: that says that it requires grad, but
  // no gradient goes to it, so eager keeps nothing for one and lets the program write what would be kept.
  static bool isFitInput(const at::Tensor& tensor);
  // An op may give back its argument: whether an output is a new tensor is known when it has run.
  bool mayPassThrough() const { return may_pass_through_; }
  // What `run` runs where these inputs require grad; nullptr: the ops as written. Made when first asked for.
  std::shared_ptr<const PartVariant> variantThatRuns(const InputMask& requires_grad) const;
  // Whether `run` would run that on these inputs, if it is not nullptr.
  bool fits(const InputMask& requires_grad, const torch::jit::Stack& inputs) const;
  // As `run` where `variant` is what runs, and its forward has run already: what it gave is moved from
  // `results`.
  compat::NodePtr runAfterForward(const std::shared_ptr<const PartVariant>& variant, torch::jit::Stack& stack,
                                  c10::IValue* results, const std::shared_ptr<PieceRun>& piece_run) const;

 private:
  struct Slot;
  // Of an input that differs from what was expected.
  bool guardAllows(const InputMask& requires_grad) const;
  bool requireGrad(const InputMask& mask, const torch::jit::Stack& inputs) const;
  // False: something about the inputs is not what the formulas were checked for, so the ops run as written.
  bool fitsFormulas(const torch::jit::Stack& inputs) const;
  std::shared_ptr<const PartVariant> variantFor(const InputMask& requires_grad) const;
  compat::NodePtr runCompiled(const std::shared_ptr<const PartVariant>& variant, torch::jit::Stack& stack,
                              const std::shared_ptr<PieceRun>& piece_run) const;
  // Gives the outputs on the stack their node, and drops what only it keeps.
  compat::NodePtr attachNode(const std::shared_ptr<const PartVariant>& variant,
                             c10::ArrayRef<c10::IValue> inputs, torch::jit::Stack& stack,
                             const std::shared_ptr<PieceRun>& piece_run) const;

  const torch::jit::Code& plain() const;

  std::shared_ptr<torch::jit::Graph> graph_;
  mutable std::once_flag plain_made_;
  mutable std::optional<torch::jit::Code> plain_;  // the ops as written; a compiled part may never need it
  InputMask expected_, open_;
  Guard guard_;
  bool compiled_ = false;
  bool may_pass_through_ = false;  // an op may give back its argument
  std::string reason_;
  std::vector<size_t> tensor_inputs_;
  std::vector<at::ScalarType> constant_dtypes_;
  // Variants are only ever added, at the front: readers need no lock.
  std::shared_ptr<const PartVariant> expected_variant_;
  mutable std::atomic<Slot*> slots_{nullptr};
  mutable std::mutex adding_;
};

}  // namespace faultline
