// Grad mode at each step of a program: what prim::Enter/Exit of the autograd context managers and
// set_grad_enabled make of the caller's mode. Calls that are not inlined leave it unknown.
#pragma once
#include <vector>

#include "engine/profile/evidence.h"
#include "engine/profile/program.h"

namespace faultline::profile {

class GradModes {
 public:
  GradModes(const FlowProgram& program, GradMode caller);

  // The mode in which the node at `step` runs (before its own effect on the mode).
  GradMode at(int32_t step) const { return modes_.empty() ? caller_ : modes_[static_cast<size_t>(step)]; }

 private:
  void walk(const FlowProgram& program);
  GradMode afterNode(const FlowProgram& program, const Node* node, GradMode mode);
  GradMode modeNamedBy(const FlowProgram& program, const Value* flag) const;

  GradMode caller_;
  std::vector<GradMode> modes_;  // per step; empty where nothing changes it
};

// It may leave another grad mode than it found.
bool mayChangeGradMode(const Node* node);
// aten::set_grad_enabled, which has no effect besides.
bool setsGradMode(const Node* node);
// Runs code that is not part of the program.
bool callsOut(const Node* node);

}  // namespace faultline::profile
