// Ops that must keep their place, and memory that is written: what stays eager, and in its order, so that a
// cut may stand anywhere.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/graph_break/working_copy.h"

namespace faultline {

// Why a top-level node is a barrier: it, or a node of its blocks, writes, changes the grad mode, or has
// effects that are not known. Nothing is moved across it. Empty: it is none.
std::string barrierReason(const WorkingCopy& work, const Node* node);

// Whether a value may be the very tensor that another value is: an element of a list, what an arm hands
// through, what an op gives back. A hook on it is a hook on both.
bool mayBeAnotherValue(const Value* value);

// Which values may share memory with something that the graph writes in place. Told from the graph alone:
// views, ops that may give back their argument, containers, blocks; inputs may all be one object.
class WrittenMemory {
 public:
  explicit WrittenMemory(const WorkingCopy& work);

  bool anything() const { return anything_; }
  bool holds(const Value* value) const;

 private:
  const Value* rootOf(const Value* value) const;
  void unite(const Value* a, const Value* b);
  void uniteAll(const Node* node);
  void visit(const torch::jit::Block* block);
  void visit(const Node* node);
  void write(const Value* value) { writes_.push_back(value); }

  mutable std::unordered_map<const Value*, const Value*> parents_;
  std::vector<const Value*> writes_;
  std::unordered_map<const Value*, bool> written_;  // by root
  bool anything_ = false;
  bool everything_ = false;  // an op of unknown effects
};

}  // namespace faultline
