#include "oracles/campaign/triggers.h"

#include <unordered_set>

#include "faultline/ir.h"

namespace faultline {

namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

// All nodes, those of If and Loop bodies included.
void collect(const Block* block, std::vector<Node*>& nodes) {
  for (Node* node : const_cast<Block*>(block)->nodes()) {
    nodes.push_back(node);
    for (const Block* inner : node->blocks()) {
      collect(inner, nodes);
    }
  }
}

bool shareMemory(const c10::AliasInfo* a, const c10::AliasInfo* b) {
  return a != nullptr && b != nullptr && a->beforeSets() == b->beforeSets();
}

// The values that `value` is a view of or the same tensor as, by the schema of the op that made it.
std::vector<Value*> memoryOf(Value* value) {
  std::vector<Value*> from;
  const c10::FunctionSchema* schema = value->node()->maybeSchema();
  if (schema == nullptr || value->offset() >= schema->returns().size()) {
    return from;
  }
  const c10::AliasInfo* result = schema->returns()[value->offset()].alias_info();
  for (size_t i = 0; i < schema->arguments().size() && i < value->node()->inputs().size(); ++i) {
    if (shareMemory(schema->arguments()[i].alias_info(), result)) {
      from.push_back(value->node()->input(i));
    }
  }
  return from;
}

std::vector<Value*> writtenBy(Node* node) {
  std::vector<Value*> written;
  const c10::FunctionSchema* schema = node->maybeSchema();
  for (size_t i = 0; schema != nullptr && i < schema->arguments().size() && i < node->inputs().size(); ++i) {
    const c10::AliasInfo* info = schema->arguments()[i].alias_info();
    if (info != nullptr && info->isWrite()) {
      written.push_back(node->input(i));
    }
  }
  return written;
}

// Whether something that is written is, through any chain of views, the result of a node that `matches`.
template <class Matches>
bool writtenThrough(const torch::jit::Graph& graph, Matches matches) {
  const std::shared_ptr<torch::jit::Graph> flat = const_cast<torch::jit::Graph&>(graph).copy();
  inlineSubgraphs(*flat);
  std::vector<Node*> nodes;
  collect(flat->block(), nodes);
  for (Node* node : nodes) {
    std::vector<Value*> todo = writtenBy(node);
    std::unordered_set<Value*> seen(todo.begin(), todo.end());
    while (!todo.empty()) {
      Value* value = todo.back();
      todo.pop_back();
      if (matches(value->node())) {
        return true;
      }
      for (Value* source : memoryOf(value)) {
        if (seen.insert(source).second) {
          todo.push_back(source);
        }
      }
    }
  }
  return false;
}

// Views with an autodiff formula that are missing in the list of views which libtorch keeps out of
// differentiable subgraphs (isViewOp in create_autodiff_subgraphs.cpp).
bool isUnlistedView(Node* node) {
  static const std::unordered_set<std::string> names{"aten::t", "aten::permute", "aten::squeeze",
                                                     "aten::unsqueeze"};
  return names.count(node->kind().toQualString()) != 0;
}

bool writesIntoUnlistedView(const torch::jit::Graph& graph) { return writtenThrough(graph, isUnlistedView); }

}  // namespace

const std::vector<Trigger>& triggers() {
  static const std::vector<Trigger> all{
      {"write_into_unlisted_view",
       "the result of t, permute, squeeze or unsqueeze, or a view of it, is written in place",
       writesIntoUnlistedView},
  };
  return all;
}

const Trigger* findTrigger(std::string_view name) {
  for (const Trigger& trigger : triggers()) {
    if (trigger.name == name) {
      return &trigger;
    }
  }
  return nullptr;
}

}  // namespace faultline
