#include "engine/profile/program.h"

#include "engine/profile/evidence.h"
#include "engine/profile/grad_mode.h"
#include "engine/support/prefetch.h"

namespace faultline::profile {
namespace {

namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

// Where the walk stands in one block or subgraph.
struct Frame {
  const Block* block;
  torch::jit::const_graph_node_list_iterator next;
  torch::jit::const_graph_node_list_iterator end;
  int32_t control;
  int32_t owner;       // step of Open or Call; -1 for the graph
  size_t block_index;  // among the owner's blocks
  bool call;
};

Frame frameFor(const Block* block, int32_t control, int32_t owner, size_t block_index, bool call) {
  auto nodes = block->nodes();
  return {block, nodes.begin(), nodes.end(), control, owner, block_index, call};
}

ControlKind kindOfBlocks(const Node* node) {
  if (node->kind() == prim::If) return ControlKind::Arm;
  if (node->kind() == prim::Loop) return ControlKind::Body;
  return ControlKind::Other;
}

}  // namespace

bool runsSubgraphInPlace(const Node* node) {
  switch (node->kind()) {
    case prim::DifferentiableGraph:
    case prim::FunctionalGraph:
    case prim::FusionGroup:
    case prim::CudaFusionGroup:
    case prim::TensorExprGroup:
    case prim::TensorExprDynamicGroup:
    case prim::oneDNNFusionGroup:
    case prim::MKLDNNGroup:
      break;
    default:
      return false;
  }
  if (!node->hasAttribute(attr::Subgraph) || node->kindOf(attr::Subgraph) != torch::jit::AttributeKind::g)
    return false;
  if (!node->blocks().empty()) return false;
  const auto& subgraph = *node->g(attr::Subgraph);
  return subgraph.inputs().size() == node->inputs().size() &&
         subgraph.outputs().size() >= node->outputs().size();
}

FlowProgram::FlowProgram(const Graph& graph) {
  // A second subgraph that turns out to be shared is rare; walking again keeps the common walk simple.
  while (!build(graph)) {
  }
}

bool FlowProgram::build(const Graph& graph) {
  steps_.clear();
  controls_.clear();
  changes_grad_mode_ = false;
  callers_ = {{&graph, nullptr}};
  auto emit = [&](StepKind kind, const Node* node, const Block* place, int32_t control, int32_t match = -1) {
    steps_.push_back({kind, false, false, false, node, place, control, match});
    return static_cast<int32_t>(steps_.size()) - 1;
  };
  auto beginControl = [&](const Node* node, const Block* block, int32_t parent, int32_t open) {
    const int32_t control = static_cast<int32_t>(controls_.size());
    controls_.push_back({kindOfBlocks(node), parent, open, static_cast<int32_t>(steps_.size()), 0});
    emit(StepKind::BlockBegin, node, block, control, control);
    return control;
  };

  controls_.push_back({ControlKind::Top, -1, -1, 0, 0});
  std::vector<Frame> stack = {frameFor(graph.block(), 0, -1, 0, false)};
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next != frame.end) {
      const Node* node = *frame.next;
      ++frame.next;
      if (frame.next != frame.end) prefetch(*frame.next);
      changes_grad_mode_ = changes_grad_mode_ || mayChangeGradMode(node);
      const int32_t control = frame.control;
      if (!node->blocks().empty()) {
        const int32_t open = emit(StepKind::Open, node, frame.block, control);
        const int32_t inner = beginControl(node, node->blocks()[0], control, open);
        stack.push_back(frameFor(node->blocks()[0], inner, open, 0, false));
      } else if (runsSubgraphInPlace(node) && !isShared(node->g(attr::Subgraph).get())) {
        const Graph* subgraph = node->g(attr::Subgraph).get();
        if (!callers_.emplace(subgraph, node).second) {
          shared_.insert(subgraph);
          return false;
        }
        const int32_t call = emit(StepKind::Call, node, frame.block, control);
        stack.push_back(frameFor(subgraph->block(), control, call, 0, true));
      } else {
        // What every analysis asks of each node is asked while it is at hand.
        Step& step = steps_[static_cast<size_t>(emit(StepKind::Node, node, frame.block, control))];
        step.profile = isProfile(node);
        step.irregular = node->kind() == prim::profile && !step.profile;
        step.transparent = isTransparent(node);
      }
      continue;
    }

    const Frame done = frame;
    stack.pop_back();
    const Node* returns = done.block->return_node();
    if (done.owner < 0) {
      controls_[0].end = emit(StepKind::End, returns, done.block, done.control);
    } else if (done.call) {
      emit(StepKind::Return, returns, done.block, done.control);
      const Step call = step(done.owner);
      const int32_t end = emit(StepKind::CallEnd, call.node, call.place, done.control, done.owner);
      steps_[static_cast<size_t>(done.owner)].match = end;
    } else {
      controls_[static_cast<size_t>(done.control)].end =
          emit(StepKind::BlockEnd, returns, done.block, done.control, done.control);
      const Step open = step(done.owner);
      const size_t next = done.block_index + 1;
      if (next < open.node->blocks().size()) {
        const Block* block = open.node->blocks()[next];
        const int32_t control = beginControl(open.node, block, open.control, done.owner);
        stack.push_back(frameFor(block, control, done.owner, next, false));
      } else {
        const int32_t close = emit(StepKind::Close, open.node, open.place, open.control, done.owner);
        steps_[static_cast<size_t>(done.owner)].match = close;
      }
    }
  }
  step_of_.clear();
  step_of_.reserve(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (readsOperands(steps_[i].kind)) step_of_.set(steps_[i].node, static_cast<int32_t>(i));
  }
  return true;
}

const Value* FlowProgram::behindBoundaries(const Value* value) const {
  while (true) {
    const Node* maker = value->node();
    if (maker->kind() == prim::Param) {
      const Graph* graph = maker->owningGraph();
      const auto caller = callers_.find(graph);
      const bool of_block = maker->owningBlock() != graph->block();
      if (of_block || caller == callers_.end() || caller->second == nullptr) return value;
      value = caller->second->input(value->offset());
    } else if (runsSubgraphInPlace(maker) && !isShared(maker->g(attr::Subgraph).get())) {
      value = maker->g(attr::Subgraph)->outputs()[value->offset()];
    } else {
      return value;
    }
  }
}

int32_t FlowProgram::stepOf(const Node* node) const {
  const int32_t* found = step_of_.find(node);
  return found == nullptr ? -1 : *found;
}

std::vector<int32_t> FlowProgram::blocksOf(int32_t open) const {
  std::vector<int32_t> result;
  int32_t at = open + 1;
  while (step(at).kind == StepKind::BlockBegin) {
    result.push_back(step(at).match);
    at = control(step(at).match).end + 1;
  }
  return result;
}

}  // namespace faultline::profile
