#include "generators/generate/execution.h"

#include <ATen/core/stack.h>
#include <torch/csrc/jit/ir/constants.h>

#include "engine/support/check.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

c10::IValue makeList(const Node& node, const std::vector<c10::IValue>& elements) {
  c10::impl::GenericList list(node.output()->type()->expectRef<c10::ListType>().getElementType());
  for (const c10::IValue& element : elements) list.push_back(element);
  return list;
}

}  // namespace

const c10::IValue& Execution::get(const Value* value) const {
  auto found = values_.find(value);
  FAULTLINE_CHECK(found != values_.end(), "value '" + value->debugName() + "' was not executed");
  return found->second;
}

void Execution::setOperation(const Node* node, torch::jit::Operation operation) {
  operations_.insert_or_assign(node, std::move(operation));
}

void Execution::forget(const Node* node) {
  operations_.erase(node);
  for (const Value* output : node->outputs()) values_.erase(output);
  for (const Block* block : node->blocks()) {
    for (const Value* input : block->inputs()) values_.erase(input);
    for (const Node* inner : block->nodes()) forget(inner);
  }
}

void Execution::run(const Block* block) {
  for (const Node* node : block->nodes()) run(node);
}

void Execution::run(const Node* node) {
  dispatch(node);
  if (observer) observer(*node, *this);
}

void Execution::dispatch(const Node* node) {
  std::vector<c10::IValue> inputs;
  auto collect = [&] {
    for (const Value* input : node->inputs()) inputs.push_back(get(input));
  };
  switch (node->kind()) {
    case prim::Constant:
      return set(node->output(), *torch::jit::toIValue(node->output()));
    case prim::If:
      return runIf(node);
    case prim::Loop:
      return runLoop(node);
    case prim::ListConstruct:
      collect();
      return set(node->output(), makeList(*node, inputs));
    case prim::TupleConstruct:
      collect();
      return set(node->output(), c10::ivalue::Tuple::create(std::move(inputs)));
    case prim::ListUnpack: {
      c10::impl::GenericList list = get(node->input()).toList();
      TORCH_CHECK(list.size() == node->outputs().size(), "list of another length");
      for (size_t i = 0; i < list.size(); ++i) set(node->output(i), list.get(i));
      return;
    }
    case prim::TupleUnpack: {
      c10::IValue tuple = get(node->input());
      const auto& elements = tuple.toTupleRef().elements();
      for (size_t i = 0; i < node->outputs().size(); ++i) set(node->output(i), elements[i]);
      return;
    }
    case prim::unchecked_cast:
    case prim::profile:
      return set(node->output(), c10::IValue(get(node->input())));
    default:
      return node->hasAttribute(torch::jit::attr::Subgraph) ? runSubgraph(node) : runOperation(node);
  }
}

void Execution::runIf(const Node* node) {
  const Block* block = node->blocks()[get(node->input()).toBool() ? 0 : 1];
  run(block);
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    set(node->output(i), c10::IValue(get(block->outputs()[i])));
  }
}

void Execution::runLoop(const Node* node) {
  const Block* body = node->blocks()[0];
  int64_t trips = get(node->input(0)).toInt();
  bool more = get(node->input(1)).toBool();
  std::vector<c10::IValue> carried;
  for (size_t i = 2; i < node->inputs().size(); ++i) carried.push_back(get(node->input(i)));
  for (int64_t trip = 0; trip < trips && more; ++trip) {
    set(body->inputs()[0], trip);
    for (size_t i = 0; i < carried.size(); ++i) set(body->inputs()[i + 1], carried[i]);
    run(body);
    more = get(body->outputs()[0]).toBool();
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = get(body->outputs()[i + 1]);
  }
  for (size_t i = 0; i < carried.size(); ++i) set(node->output(i), carried[i]);
}

void Execution::runSubgraph(const Node* node) {
  const torch::jit::Graph& subgraph = *node->g(torch::jit::attr::Subgraph);
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    set(subgraph.inputs()[i], c10::IValue(get(node->input(i))));
  }
  run(subgraph.block());
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    set(node->output(i), c10::IValue(get(subgraph.outputs()[i])));
  }
}

void Execution::runOperation(const Node* node) {
  auto operation = operations_.find(node);
  if (operation == operations_.end()) operation = operations_.emplace(node, node->getOperation()).first;
  torch::jit::Stack stack;
  for (const Value* input : node->inputs()) stack.push_back(get(input));
  operation->second(stack);
  FAULTLINE_CHECK(stack.size() == node->outputs().size(),
                  "an operator gave other results than its schema says");
  for (size_t i = 0; i < stack.size(); ++i) set(node->output(i), std::move(stack[i]));
}

}  // namespace faultline
