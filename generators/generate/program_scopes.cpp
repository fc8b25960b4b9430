#include <algorithm>

#include "engine/support/check.h"
#include "generators/generate/program.h"
#include "generators/ops/limits.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

ProgramBuilder::Scope ProgramBuilder::open(Node* node, Block* block) {
  open_.push_back({node, block});
  replay();
  return {live_.size(), integers_.size()};
}

void ProgramBuilder::openNext(Block* block) {
  open_.back().block = block;
  replay();
}

std::vector<Operand> ProgramBuilder::leave(const Scope& scope) {
  std::vector<Operand> seen = live_;
  auto outlives = [](const Operand& operand) {
    return isGraphInput(operand.value) || operand.value->node()->kind() == prim::Constant;
  };
  std::vector<Operand> kept(live_.begin(), live_.begin() + static_cast<std::ptrdiff_t>(scope.live));
  for (size_t i = scope.live; i < live_.size(); ++i) {
    if (outlives(live_[i])) kept.push_back(live_[i]);
  }
  live_ = std::move(kept);
  auto first_inner = integers_.begin() + static_cast<std::ptrdiff_t>(scope.integers);
  integers_.erase(
      std::remove_if(first_inner, integers_.end(), [](Value* value) { return !isGraphInput(value); }),
      integers_.end());
  return seen;
}

void ProgramBuilder::close() {
  FAULTLINE_CHECK(!open_.empty(), "no block is open");
  open_.pop_back();
}

bool ProgramBuilder::execute(Node* node) {
  try {
    replay();
    if (!writes_ || backwardRuns() || choices_.flip(limits::spoiled_percent)) return true;
  } catch (const std::exception&) {
    // The node is left out, like an op that throws.
  }
  destroy(node);
  replay();
  return false;
}

void ProgramBuilder::destroy(Node* node) {
  execution_.forget(node);
  node->destroy();
}

void ProgramBuilder::bindInputs() {
  std::vector<c10::IValue> earlier;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    auto made = makeInput(inputs_[i], mixSeed(seed_, i), earlier);
    FAULTLINE_CHECK(made.has_value(), made ? "" : made.error().str());
    execution_.set(graph_->inputs()[i], *made);
    earlier.push_back(*made);
  }
}

void ProgramBuilder::replay() {
  c10::GradMode::set_enabled(true);
  bindInputs();
  replay(graph_->block(), 0);
  refresh();
}

void ProgramBuilder::replay(const Block* block, size_t depth) {
  for (const Node* node : block->nodes()) {
    if (depth == open_.size() || node != open_[depth].node) {
      execution_.run(node);
      continue;
    }
    if (node->kind() == prim::Loop) {
      execution_.set(open_[depth].block->inputs()[0], c10::IValue(int64_t{0}));
      for (size_t i = 2; i < node->inputs().size(); ++i) {
        execution_.set(open_[depth].block->inputs()[i - 1], c10::IValue(execution_.get(node->input(i))));
      }
    }
    return replay(open_[depth].block, depth + 1);
  }
}

// Makes the open nodes whole for a moment, so that the graph can be copied: missing blocks and block outputs.
void ProgramBuilder::completeOpenNodes(bool complete) {
  for (const Open& open : open_) {
    bool loop = open.node->kind() == prim::Loop;
    if (!loop && complete && open.node->blocks().size() == 1) open.node->addBlock();
    if (!loop && !complete && open.block == open.node->blocks()[0]) open.node->eraseBlock(1);
    if (!loop) continue;
    for (size_t i = 1; i < open.node->inputs().size(); ++i) {
      if (!complete) {
        open.block->eraseOutput(open.block->outputs().size() - 1);
        if (i > 1) open.node->eraseOutput(open.node->outputs().size() - 1);
        continue;
      }
      open.block->registerOutput(i == 1 ? open.node->input(1) : open.block->inputs()[i - 1]);
      if (i > 1) open.node->addOutput()->setType(open.node->input(i)->type());
    }
  }
}

Case ProgramBuilder::pendingCase() {
  Case pending;
  pending.seed = seed_;
  CaseRun run;
  run.inputs = inputs_;
  // Steer the run into the blocks that lead to the op.
  for (const Open& open : open_) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (graph_->inputs()[i] != open.node->input(0)) continue;
      run.inputs[i].bool_value = open.block == open.node->blocks()[0];
      run.inputs[i].int_value = std::max<int64_t>(run.inputs[i].int_value, 1);
    }
  }
  pending.runs.push_back(std::move(run));

  completeOpenNodes(true);
  size_t returned = 0;
  for (size_t i = live_.size(); i-- > 0 && returned < limits::max_returns;) {
    if (live_[i].value->node()->owningBlock() != graph_->block() || isGraphInput(live_[i].value)) continue;
    graph_->registerOutput(live_[i].value);
    ++returned;
  }
  pending.graph = graph_->copy();
  for (; returned > 0; --returned) graph_->eraseOutput(returned - 1);
  completeOpenNodes(false);
  return pending;
}

namespace {

// Constants and containers that only ops which threw had use for.
bool isLeftover(const Node* node) {
  bool may_be = node->kind() == prim::Constant || node->kind() == prim::ListConstruct;
  return may_be && !node->hasUses();
}

void removeLeftovers(Block* block) {
  for (auto it = block->nodes().rbegin(); it != block->nodes().rend();) {
    Node* node = *it;
    ++it;
    for (Block* inner : node->blocks()) removeLeftovers(inner);
    if (isLeftover(node)) node->destroy();
  }
}

size_t countNodesOf(const Block* block) {
  size_t count = 0;
  for (const Node* node : block->nodes()) {
    count += node->kind() != prim::Constant && !isLeftover(node);
    for (const Block* inner : node->blocks()) count += countNodesOf(inner);
  }
  return count;
}

}  // namespace

size_t ProgramBuilder::nodes() const { return countNodesOf(graph_->block()); }

Case ProgramBuilder::finish(const std::vector<Value*>& returns) {
  FAULTLINE_CHECK(open_.empty(), "a block is still open");
  for (Value* value : returns) graph_->registerOutput(value);
  removeLeftovers(graph_->block());
  Case made;
  made.seed = seed_;
  made.graph = graph_;
  CaseRun run;
  run.inputs = inputs_;
  made.runs.push_back(std::move(run));
  return made;
}

}  // namespace faultline
