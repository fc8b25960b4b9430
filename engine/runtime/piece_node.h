// The autograd node of a compiled part: runs prebuilt backward code on gradients and captured values.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/autodiff/gradient.h"
#include "engine/runtime/piece_run.h"
#include "engine/support/torch_compat.h"

namespace faultline {

// A differentiated part with its code, for one set of inputs that require grad. Immutable; shared by all
// runs.
struct PartVariant {
  explicit PartVariant(PieceGradient gradient);

  PieceGradient gradient;
  torch::jit::Code forward, backward;
  InputMask reached;                  // by any of the part's own outputs
  std::vector<size_t> real_vjps;      // positions in gradient.vjp_outputs that are the part's own outputs
  std::vector<size_t> all_gradients;  // 0, 1, …: positions in gradient.gradient_inputs
  // Captured temporaries that are reached by the same inputs: under create_graph each class is a node of its
  // own, so that a second backward goes only where eager's would.
  struct TemporaryClass {
    std::vector<size_t> vjps;       // positions in gradient.vjp_outputs
    std::vector<size_t> gradients;  // positions in gradient.gradient_inputs that they reach
  };
  std::vector<TemporaryClass> temporary_classes;
};

class PieceNode : public torch::autograd::Node {
 public:
  // `vjps` and `gradients`: which gradients of `variant` this node takes (its inputs) and gives (its next
  // edges). Both are the variant's own.
  PieceNode(std::shared_ptr<const PartVariant> variant, std::shared_ptr<PieceRun> run,
            const std::vector<size_t>& vjps, const std::vector<size_t>& gradients);

  void saveTensor(const at::Tensor& tensor, bool is_output) {
    saved_.push_back({{tensor, is_output}, {}, true});
  }
  void saveOther(c10::IValue value) { saved_.push_back({{}, std::move(value), false}); }

  std::string name() const override;
  void release_variables() override;

 protected:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override;

 private:
  struct Saved {
    torch::autograd::SavedVariable tensor;
    c10::IValue other;
    bool is_tensor;
  };
  void unpackSaved(std::vector<c10::IValue>& onto);
  // Gives captured temporaries nodes of their own, for a backward that is differentiated itself.
  void attachTemporaries(std::vector<c10::IValue>& captured);

  std::shared_ptr<const PartVariant> variant_;
  std::shared_ptr<PieceRun> run_;
  const std::vector<size_t>& vjps_;
  const std::vector<size_t>& gradients_;
  // Captured inputs, then captured outputs. In small blocks: one of a kibibyte or more makes malloc tidy up
  // all that is free, every time.
  std::deque<Saved> saved_;
};

}  // namespace faultline
