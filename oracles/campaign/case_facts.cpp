#include "oracles/campaign/case_facts.h"

#include <torch/csrc/jit/ir/constants.h>

#include "faultline/ir.h"
#include "oracles/exec/prepare.h"

namespace faultline {

namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

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

// Their results may be, or hold, what they are given, and no schema says so.
bool passesOn(const Node* node) {
  switch (node->kind()) {
    case prim::ListConstruct:
    case prim::ListUnpack:
    case prim::TupleConstruct:
    case prim::TupleUnpack:
    case prim::unchecked_cast:
      return true;
    default:
      break;
  }
  static const std::unordered_set<std::string_view> names{
      "aten::chunk",  "aten::split",       "aten::split_with_sizes", "aten::tensor_split",
      "aten::unbind", "aten::__getitem__", "aten::type_as",          "aten::dropout"};
  return names.count(node->kind().toQualString()) != 0;
}

// The optimiser takes the argument in their place: x * 1, x + 0 and the like.
bool isNeutral(const Node* node) {
  const bool product = isOp(node, "aten::mul") || isOp(node, "aten::div");
  const bool sum = isOp(node, "aten::add") || isOp(node, "aten::sub");
  const auto other = product || sum ? torch::jit::toIValue(node->inputs()[1]) : std::nullopt;
  return other && other->isScalar() && other->toScalar().equal(product ? 1 : 0);
}

bool requiresGrad(const InputSpec& spec) {
  return spec.requires_grad || std::any_of(spec.elements.begin(), spec.elements.end(), requiresGrad);
}

}  // namespace

bool isOp(const Node* node, std::string_view name) { return node->kind().toQualString() == name; }

CaseFacts::CaseFacts(const Case& c) : graph_(cloneGraph(*c.graph)) {
  inlineSubgraphs(*graph_);
  stripProfileNodes(*graph_);
  collect(graph_->block(), nodes_);
  followWrites();
  followUses();
  followGradients(c);
}

std::vector<Value*> CaseFacts::memoryOf(const Value* value) const {
  std::vector<Value*> from;
  const Node* node = value->node();
  const size_t offset = value->offset();
  if (node->kind() == prim::If) {
    for (const Block* arm : node->blocks()) {
      from.push_back(const_cast<Value*>(arm->outputs()[offset]));
    }
    return from;
  }
  if (node->kind() == prim::Loop) {
    return {const_cast<Value*>(node->inputs()[offset + 2]),
            const_cast<Value*>(node->blocks()[0]->outputs()[offset + 1])};
  }
  const Node* owner = node->kind() == prim::Param ? node->owningBlock()->owningNode() : nullptr;
  if (owner != nullptr && owner->kind() == prim::Loop && offset > 0) {
    return {const_cast<Value*>(owner->inputs()[offset + 1]),
            const_cast<Value*>(owner->blocks()[0]->outputs()[offset])};
  }
  if (isNeutral(node)) {
    return {const_cast<Value*>(node->inputs()[0])};
  }
  if (passesOn(node)) {
    for (const Value* input : node->inputs()) {
      from.push_back(const_cast<Value*>(input));
    }
    return from;
  }
  const c10::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr || offset >= schema->returns().size()) {
    return from;
  }
  const c10::AliasInfo* result = schema->returns()[offset].alias_info();
  for (size_t i = 0; i < schema->arguments().size() && i < node->inputs().size(); ++i) {
    if (shareMemory(schema->arguments()[i].alias_info(), result)) {
      from.push_back(const_cast<Value*>(node->inputs()[i]));
    }
  }
  return from;
}

std::vector<Value*> CaseFacts::writtenBy(Node* node) const {
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

// The nodes that made what these values are the same tensor as, views of or containers of.
void CaseFacts::follow(std::vector<Value*> todo, std::unordered_set<const Node*>& nodes) const {
  std::unordered_set<Value*> seen(todo.begin(), todo.end());
  while (!todo.empty()) {
    const Value* value = todo.back();
    todo.pop_back();
    nodes.insert(value->node());
    for (Value* source : memoryOf(value)) {
      if (seen.insert(source).second) {
        todo.push_back(source);
      }
    }
  }
}

void CaseFacts::followWrites() {
  for (Node* node : nodes_) {
    follow(writtenBy(node), written_through_);
  }
  follow(graph_->outputs().vec(), returned_);
}

void CaseFacts::followUses() {
  std::vector<const Node*> todo{graph_->return_node()};
  for (Node* node : nodes_) {
    if (!writtenBy(node).empty()) {
      todo.push_back(node);
    }
  }
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (!used_.insert(node).second) {
      continue;
    }
    for (const Value* input : node->inputs()) {
      todo.push_back(input->node());
    }
    for (const Block* inner : node->blocks()) {
      todo.push_back(inner->return_node());
    }
    // What stands in a body runs only where the body does.
    if (const Node* owner = node->owningBlock()->owningNode()) {
      todo.push_back(owner);
    }
  }
}

bool CaseFacts::anyInputNeedsGrad(const Node* node) const {
  return std::any_of(node->inputs().begin(), node->inputs().end(),
                     [&](const Value* input) { return mayNeedGrad(input); });
}

// Whether it found a value more.
bool CaseFacts::followGradients(Node* node) {
  const size_t before = need_grad_.size();
  const auto addIf = [&](bool needs, const Value* value) {
    if (needs) {
      need_grad_.insert(value);
    }
  };
  if (node->kind() == prim::Loop || node->kind() == prim::If) {
    for (const Block* body : node->blocks()) {
      for (const Value* input : body->inputs()) {
        for (const Value* source : input->offset() > 0 ? memoryOf(input) : std::vector<Value*>{}) {
          addIf(mayNeedGrad(source), input);
        }
      }
    }
    for (const Value* output : node->outputs()) {
      for (const Value* source : memoryOf(output)) {
        addIf(mayNeedGrad(source), output);
      }
    }
  } else if (!isOp(node, "aten::detach") && anyInputNeedsGrad(node)) {
    need_grad_.insert(node->outputs().begin(), node->outputs().end());
    std::vector<Value*> todo = writtenBy(node);
    while (!todo.empty()) {
      Value* value = todo.back();
      todo.pop_back();
      if (need_grad_.insert(value).second) {
        for (Value* source : memoryOf(value)) {
          todo.push_back(source);
        }
      }
    }
  }
  return need_grad_.size() != before;
}

void CaseFacts::followGradients(const Case& c) {
  for (const CaseRun& run : c.runs) {
    for (size_t i = 0; i < run.inputs.size() && i < graph_->inputs().size(); ++i) {
      const InputSpec& spec = run.inputs[i];
      const bool same = spec.kind == InputSpec::Kind::SameAs;
      if (requiresGrad(same ? run.inputs.at(spec.same_as) : spec)) {
        need_grad_.insert(graph_->inputs()[i]);
      }
    }
  }
  for (bool found = true; found;) {
    found = false;
    for (Node* node : nodes_) {
      found = followGradients(node) || found;
    }
  }
}

}  // namespace faultline
