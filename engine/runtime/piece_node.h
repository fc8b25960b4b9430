// The autograd node of a compiled part: runs prebuilt backward code on gradients and captured values.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/autodiff/gradient.h"
#include "engine/runtime/piece_run.h"
#include "engine/support/torch_compat.h"

namespace faultline {

// A differentiated part with its code, for one set of inputs that require grad. Shared by all runs.
struct PartVariant {
  explicit PartVariant(PieceGradient gradient);

  // Made when first asked for: a part that runs in a FusedForward needs none of its own.
  const torch::jit::Code& forward() const;

  PieceGradient gradient;
  torch::jit::Code backward;
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

 private:
  mutable std::once_flag forward_made_;
  mutable std::optional<torch::jit::Code> forward_;
};

class PieceNode : public torch::autograd::Node {
 public:
  // `vjps` and `gradients`: which gradients of `variant` this node takes (its inputs) and gives (its next
  // edges). Both are the variant's own.
  PieceNode(std::shared_ptr<const PartVariant> variant, std::shared_ptr<PieceRun> run,
            const std::vector<size_t>& vjps, const std::vector<size_t>& gradients);

  // `values` come, by either function. Captured inputs, then captured outputs.
  void expectSaved(size_t values);
  void saveTensor(const at::Tensor& tensor, bool is_output) {
    roomForOne().push_back({{tensor, is_output}, {}, true});
  }
  void saveOther(c10::IValue value) { roomForOne().push_back({{}, std::move(value), false}); }

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
  // In blocks: one of a kibibyte or more makes malloc tidy up all that is free, every time.
  using Block = std::vector<Saved>;
  Block& roomForOne();
  std::vector<Block> saved_;
  size_t filling_ = 0;
};

}  // namespace faultline
