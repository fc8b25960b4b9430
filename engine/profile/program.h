// A graph as one list of steps: blocks in place, bodies of differentiable subgraphs and fusion groups in
// place too.
//
// Every later analysis walks this list from front to back or back to front, so that nothing recurses over
// nesting. Positions are places between effects: two per step, before it (operands are read) and after it
// (results, writes).
#pragma once
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "engine/profile/pointer_map.h"

namespace faultline::profile {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

using Pos = uint32_t;

enum class StepKind : uint8_t {
  Node,  // no blocks, nothing entered
  Open,  // If, Loop or another node with blocks: operands are read
  BlockBegin,
  BlockEnd,  // `node` is the block's return node: its operands are read
  Close,     // results of the node opened at `match`
  Call,      // a node whose subgraph is entered: operands are read
  Return,    // `node` is the subgraph's return node
  CallEnd,   // results of the node called at `match`
  End,       // `node` is the graph's return node
};

// Of these steps a node has one; at the others it only delivers.
inline bool readsOperands(StepKind kind) {
  return kind != StepKind::BlockBegin && kind != StepKind::Close && kind != StepKind::CallEnd;
}

struct Step {
  StepKind kind;
  bool profile = false;      // `node` is a profile node with one input and one output
  bool irregular = false;    // a prim::profile of another shape: a counter or a finding
  bool transparent = false;  // `node` only looks at its inputs and hands them on
  const Node* node;
  const Block* place;  // the structural block the node stands in
  int32_t control;     // the control block it runs in
  int32_t match = -1;  // Close → Open, CallEnd → Call and back; BlockBegin and BlockEnd → the control block
                       // begun or ended
};

// Code that runs as a whole: a graph's top, an arm, a loop body. Subgraph bodies belong to the one they are
// called in.
enum class ControlKind : uint8_t { Top, Arm, Body, Other };

struct Control {
  ControlKind kind = ControlKind::Top;
  int32_t parent = -1;
  int32_t open = -1;  // step that opened the owner
  int32_t begin = 0;  // step
  int32_t end = 0;    // step
};

// Node kinds whose Subgraph runs once, in place, whenever the node does.
bool runsSubgraphInPlace(const Node* node);

class FlowProgram {
 public:
  explicit FlowProgram(const Graph& graph);

  const std::vector<Step>& steps() const { return steps_; }
  const Step& step(int32_t index) const { return steps_[static_cast<size_t>(index)]; }
  const std::vector<Control>& controls() const { return controls_; }
  const Control& control(int32_t index) const { return controls_[static_cast<size_t>(index)]; }

  // The step at which the operands of `node` (return nodes included) are read; -1 for a node that is not in
  // it.
  int32_t stepOf(const Node* node) const;
  // The control blocks opened at step `open`, in order.
  std::vector<int32_t> blocksOf(int32_t open) const;

  static Pos before(int32_t step) { return 2 * static_cast<Pos>(step); }
  static Pos after(int32_t step) { return 2 * static_cast<Pos>(step) + 1; }
  static int32_t stepAt(Pos pos) { return static_cast<int32_t>(pos / 2); }

  bool contains(int32_t control, Pos pos) const {
    const Control& c = controls_[static_cast<size_t>(control)];
    return before(c.begin) <= pos && pos <= after(c.end);
  }
  // Is there a node that may leave another grad mode than it found?
  bool changesGradMode() const { return changes_grad_mode_; }
  bool isShared(const Graph* subgraph) const { return shared_.count(subgraph) != 0; }
  // The value that `value` certainly is on the other side of subgraph boundaries, as far out or in as it was
  // made; itself where that is here.
  const Value* behindBoundaries(const Value* value) const;

 private:
  bool build(const Graph& graph);

  std::vector<Step> steps_;
  std::vector<Control> controls_;
  bool changes_grad_mode_ = false;
  PointerMap<Node, int32_t> step_of_;
  std::unordered_map<const Graph*, const Node*>
      callers_;                              // of subgraphs that are entered; the graph's: nullptr
  std::unordered_set<const Graph*> shared_;  // subgraphs on two nodes: not entered
};

}  // namespace faultline::profile
