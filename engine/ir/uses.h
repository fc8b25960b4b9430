// Changing many uses of one value. libtorch keeps them in a list that it searches from the front, and shifts,
// at every change: rewiring the uses of a tensor that is read a hundred thousand times takes time by the
// square of that.
#pragma once
#include <unordered_map>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// While it lives, the uses of values that were split hang on stand-ins, few on each, and may be changed
// quickly by libtorch's own functions. Inputs then name the stand-in; what is left on it goes back to the
// value in the end.
class UseSplitter {
 public:
  UseSplitter() = default;
  ~UseSplitter();
  UseSplitter(const UseSplitter&) = delete;
  UseSplitter& operator=(const UseSplitter&) = delete;

  // Does nothing where uses are few, or so deep in blocks that sorting them would take longer. The value has
  // to outlive the splitter.
  void split(Value* value);
  // The value that a stand-in stands for; else the value itself.
  Value* owner(Value* value) const;

 private:
  void split(Value* owner, Value* from, const std::vector<const Node*>& places, size_t first, size_t last);

  std::vector<Value*> stand_ins_;
  std::unordered_map<const Value*, Value*> owners_;  // of stand-ins
};

struct Replacement {
  Use use;
  Value* with;
};

// As use.user->replaceInput for each.
void replaceUses(const std::vector<Replacement>& replacements);

// As from->replaceAllUsesWith(to).
void replaceAllUses(Value* from, Value* to);

}  // namespace faultline
