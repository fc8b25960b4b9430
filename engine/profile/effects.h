// What an operator does to the tensors it gets: writes, and how its results relate to its operands.
// From its schema, corrected by effects.def.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

namespace faultline::profile {

using torch::jit::Node;

enum class ResultKind : uint8_t {
  Fresh,
  Self,       // the operand itself
  MaybeSelf,  // the operand itself, a view of it or something new
  View,       // a new object on the operand's memory
  Detached,   // the same, outside its gradients
  Elements,   // a list of views of the operand
  Anything,
};

struct ResultEffect {
  ResultKind kind = ResultKind::Fresh;
  uint16_t operand = 0;
};

struct WriteEffect {
  uint16_t operand = 0;
  bool identity = false;  // dtype and device may change too
  bool shape = false;
  bool keeps_rank = false;
  bool gradient = false;  // may lower requires_grad; every write may raise it
};

struct OpEffect {
  bool opaque = false;                // may write whatever it reaches and return anything
  std::vector<ResultEffect> results;  // one per output; missing ones are Fresh
  std::vector<WriteEffect> writes;
  std::vector<uint16_t> escapes;  // operands that become reachable from elsewhere
  std::vector<bool> reads_list;  // per operand: a list there is only read, and its elements are not handed on
};

// Remembers by schema; one per analysis, not for use from several threads.
class Effects {
 public:
  Effects();
  const OpEffect& of(const Node* node);

 private:
  struct Correction {
    bool metadata = false;
    bool keeps_rank = false;
    bool gradient = false;
    bool data = false;
    bool same = false;
    bool view = false;
    bool any = false;
    bool detach = false;
  };
  OpEffect classify(const Node* node, const c10::FunctionSchema& schema) const;

  std::unordered_map<c10::Symbol, Correction> corrections_;
  std::unordered_map<const c10::FunctionSchema*, OpEffect> by_schema_;
  OpEffect opaque_;
};

}  // namespace faultline::profile
