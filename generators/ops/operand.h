// What operand rules know of the values at hand and what they may ask for. Metadata only; who implements
// OperandSource decides where it comes from (real tensors in generators/generate, types of case text in a
// mutator).
#pragma once
#include <optional>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "generators/case/spec.h"
#include "generators/choices/choices.h"
#include "generators/ops/range.h"

namespace faultline {

struct Operand {
  torch::jit::Value* value = nullptr;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes, strides;
  bool contiguous = true;
  bool writable = true;  // eager PyTorch is expected to let an op write into it
  bool used = false;     // by an op so far
  bool requires_grad = false;
  // False: autograd refuses to look at it (a view from a no_grad region that was written there). No op gets
  // it.
  bool usable = true;
  Range range;

  size_t rank() const { return sizes.size(); }
  int64_t elements() const;
};

// A tensor that would fit, for when none at hand does.
struct TensorWish {
  std::optional<at::ScalarType> dtype;
  std::optional<std::vector<int64_t>> sizes;
  size_t min_rank = 0, max_rank = 0;  // where no sizes are asked for; max_rank 0: no wish
  bool filled = false;                // at least one element
  bool writable = false;              // an op may write into it
  std::optional<ValuePattern> pattern;
};

class OperandSource {
 public:
  virtual ~OperandSource() = default;
  virtual Choices& choices() = 0;
  // The tensors in scope, oldest first. May grow by make().
  virtual const std::vector<Operand>& tensors() const = 0;
  // Integers in scope (loop counters, graph inputs) that may stand where any number does.
  virtual std::vector<torch::jit::Value*> integers() const = 0;
  virtual torch::jit::Value* constant(const c10::IValue& value) = 0;
  // A new tensor from outside: index into tensors(); none: there are enough, or the wish is not one that can
  // be met.
  virtual std::optional<size_t> make(const TensorWish& wish) = 0;
  virtual torch::jit::Value* list(const std::vector<torch::jit::Value*>& elements) = 0;
  virtual int64_t drawSize() = 0;       // a size of this case's palette
  virtual bool broadcasts() const = 0;  // may binary operands differ in shape?
  // The tensor that the next first operand is to be, if it fits; nullptr: any.
  virtual const torch::jit::Value* preferred() const = 0;
};

}  // namespace faultline
