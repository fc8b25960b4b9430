// Taking profile nodes out again, to any depth, without recursing over nesting.
#include <unordered_set>

#include "engine/ir/uses.h"
#include "engine/profile/evidence.h"
#include "faultline/profile.h"

namespace faultline {
namespace {

namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

using torch::jit::Block;

enum class What { All, Clones };

bool goes(const Node* node, What what) {
  if (node->kind() == prim::profile_ivalue)
    return what == What::All && node->inputs().size() == node->outputs().size();
  if (node->kind() != prim::profile) return false;
  // A node whose shape is a finding is left when its outputs are used: nothing says what should replace them.
  bool used = false;
  for (const Value* output : node->outputs()) used = used || output->hasUses();
  if (node->outputs().size() > node->inputs().size() && used) return false;
  return what == What::All || profile::isClone(node);
}

size_t removeNodes(Graph& graph, What what) {
  std::vector<Node*> going;
  std::unordered_set<Graph*> seen = {&graph};
  std::vector<std::shared_ptr<Graph>> alive;  // subgraphs of nodes that are destroyed stay until we are done
  std::vector<Block*> stack = {graph.block()};
  while (!stack.empty()) {
    Block* block = stack.back();
    stack.pop_back();
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
      Node* node = *it;
      ++it;
      for (Block* inner : node->blocks()) stack.push_back(inner);
      for (torch::jit::Symbol name : node->attributeNames()) {
        if (node->kindOf(name) != torch::jit::AttributeKind::g) continue;
        alive.push_back(node->g(name));
        if (seen.insert(alive.back().get()).second) stack.push_back(alive.back()->block());
      }
      if (goes(node, what)) going.push_back(node);
    }
  }
  // Outer blocks were walked before inner ones: what stands before another in a chain goes first.
  UseSplitter splitter;
  for (Node* node : going) {
    for (size_t i = 0; i < node->outputs().size() && i < node->inputs().size(); ++i)
      replaceAllUses(node->output(i), splitter.owner(node->input(i)));
    for (Value* input : node->inputs()) splitter.split(input);
    node->destroy();
  }
  return going.size();
}

}  // namespace

size_t removeProfileNodes(Graph& graph) { return removeNodes(graph, What::All); }
size_t removeProfileClones(Graph& graph) { return removeNodes(graph, What::Clones); }

}  // namespace faultline
