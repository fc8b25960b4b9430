#include "engine/graph_break/legality.h"

#include <algorithm>
#include <unordered_set>

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "engine/autodiff/differentiability.h"
#include "engine/profile/effects.h"

namespace faultline {

namespace {

using torch::jit::Block;
namespace prim = torch::jit::prim;

// Their schemas do not say that they update the running statistics.
bool writesStatistics(const Node* node) {
  static const std::unordered_set<c10::Symbol> kinds = [] {
    std::unordered_set<c10::Symbol> symbols;
    for (const char* kind : {"aten::batch_norm", "aten::native_batch_norm", "aten::_batch_norm_impl_index",
                             "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::instance_norm"}) {
      symbols.insert(c10::Symbol::fromQualString(kind));
    }
    return symbols;
  }();
  if (!kinds.count(node->kind())) {
    return false;
  }
  const auto* schema = node->maybeSchema();
  if (!schema) {
    return true;
  }
  for (size_t i = 0; i < schema->arguments().size(); ++i) {
    const std::string& name = schema->arguments()[i].name();
    const Value* value = node->input(i);
    if (name == "running_mean" && value->mustBeNone()) {
      return false;
    }
    if (name == "training" || name == "use_input_stats") {
      auto constant = torch::jit::toIValue(value);
      if (constant && constant->isBool() && !constant->toBool()) {
        return false;
      }
    }
  }
  return true;
}

bool isOpaque(const Node* node) {
  static const std::unordered_set<c10::Symbol> plain = {prim::Enter,
                                                        prim::Exit,
                                                        prim::Constant,
                                                        prim::If,
                                                        prim::Loop,
                                                        prim::ListConstruct,
                                                        prim::ListUnpack,
                                                        prim::TupleIndex,
                                                        prim::TupleConstruct,
                                                        prim::TupleUnpack,
                                                        prim::TupleSlice,
                                                        prim::DictConstruct,
                                                        prim::unchecked_cast,
                                                        prim::Uninitialized,
                                                        prim::isinstance,
                                                        prim::Print,
                                                        prim::RaiseException,
                                                        prim::ConstantChunk,
                                                        prim::GetAttr,
                                                        prim::AutogradAnyNonZero,
                                                        prim::AutogradAllNonZero,
                                                        prim::AutogradAllZero,
                                                        prim::AutogradZero,
                                                        prim::AutogradAdd,
                                                        prim::BroadcastSizes};
  static const c10::Symbol reads_mode = c10::Symbol::fromQualString("aten::is_grad_enabled");
  if (changesMode(node) || plain.count(node->kind()) || node->kind() == reads_mode) {
    return false;
  }
  const auto* op = node->maybeOperator();
  return !op || op->aliasAnalysisKind() == c10::AliasAnalysisKind::CONSERVATIVE;
}

bool writes(const Node* node) {
  const auto* schema = node->maybeSchema();
  return (schema && schema->is_mutable()) || writesStatistics(node) || node->kind() == prim::SetAttr;
}

std::string ownReason(const WorkingCopy& work, const Node* node) {
  if (writes(node)) {
    return work.names.of(node) + " writes in place";
  }
  if (changesMode(node)) {
    return work.names.of(node) + " changes the grad mode";
  }
  return isOpaque(node) ? "the effects of " + work.names.of(node) + " are not known" : std::string();
}

bool mayHold(const Value* value) { return mayHoldTensor(*value->type()); }

}  // namespace

std::string barrierReason(const WorkingCopy& work, const Node* node) {
  std::string reason = node->blocks().empty() || !changesMode(node) ? ownReason(work, node) : std::string();
  for (const Block* block : node->blocks()) {
    for (const Node* inner : block->nodes()) {
      if (reason.empty()) {
        reason = barrierReason(work, inner);
      }
    }
  }
  return reason;
}

bool mayBeAnotherValue(const Value* value) {
  profile::Effects effects;
  std::vector<const Value*> pending{value};
  // What it may be has no name of its own if nobody else uses it.
  const auto isUsedElsewhere = [&](const Value* same) {
    pending.push_back(same);
    return same->uses().size() > 1;
  };
  while (!pending.empty()) {
    const Value* given = pending.back();
    pending.pop_back();
    const Node* node = given->node();
    const size_t result = given->offset();
    if (node->kind() == prim::If || node->kind() == prim::Loop) {
      const bool loop = node->kind() == prim::Loop;
      for (const Block* block : node->blocks()) {
        const Value* output = block->outputs()[result + (loop ? 1 : 0)];
        if (output->node()->owningBlock() != block || isUsedElsewhere(output)) return true;
      }
      if (loop && isUsedElsewhere(node->input(result + 2))) return true;
      continue;
    }
    if (node->kind().is_prim() || !node->maybeSchema()) return true;
    const profile::OpEffect& effect = effects.of(node);
    if (effect.opaque) return true;
    if (result >= effect.results.size()) continue;
    switch (effect.results[result].kind) {
      case profile::ResultKind::Self:
      case profile::ResultKind::MaybeSelf:
        if (isUsedElsewhere(node->input(effect.results[result].operand))) return true;
        break;
      case profile::ResultKind::Anything:
      case profile::ResultKind::Elements:
        return true;
      default:
        break;
    }
  }
  return false;
}

WrittenMemory::WrittenMemory(const WorkingCopy& work) {
  visit(work.graph->block());
  anything_ = everything_ || !writes_.empty();
  const auto inputs = work.graph->inputs();
  std::unordered_set<const Value*> roots;
  for (const Value* value : writes_) {
    roots.insert(rootOf(value));
  }
  auto is_written = [&](const Value* value) { return roots.count(rootOf(value)) > 0; };
  if (std::any_of(inputs.begin(), inputs.end(), is_written)) {
    const Value* first = nullptr;
    for (const Value* input : inputs) {
      if (mayHold(input)) {
        first ? unite(first, input) : void(first = input);
      }
    }
  }
  for (const Value* value : writes_) {
    written_[rootOf(value)] = true;
  }
}

bool WrittenMemory::holds(const Value* value) const {
  return everything_ || (anything_ && written_.count(rootOf(value)) > 0);
}

const Value* WrittenMemory::rootOf(const Value* value) const {
  auto it = parents_.find(value);
  if (it == parents_.end() || it->second == value) {
    return value;
  }
  const Value* root = it->second;
  for (auto up = parents_.find(root); up != parents_.end() && up->second != root; up = parents_.find(root)) {
    root = up->second;
  }
  it->second = root;
  return root;
}

void WrittenMemory::unite(const Value* a, const Value* b) {
  if (mayHold(a) && mayHold(b)) {
    parents_[rootOf(a)] = rootOf(b);
  }
}

void WrittenMemory::uniteAll(const Node* node) {
  const Value* first = nullptr;
  for (const auto values : {node->inputs(), node->outputs()}) {
    for (const Value* value : values) {
      if (mayHold(value)) {
        first ? unite(first, value) : void(first = value);
      }
    }
  }
}

void WrittenMemory::visit(const Block* block) {
  for (const Node* node : block->nodes()) {
    visit(node);
  }
}

void WrittenMemory::visit(const Node* node) {
  for (const Block* inner : node->blocks()) {
    visit(inner);
  }
  if (node->kind() == prim::If) {
    for (const Block* arm : node->blocks()) {
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        unite(node->outputs()[i], arm->outputs()[i]);
      }
    }
    return;
  }
  if (node->kind() == prim::Loop) {
    const Block* body = node->blocks()[0];
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      unite(node->outputs()[i], node->inputs()[i + 2]);
      unite(node->outputs()[i], body->inputs()[i + 1]);
      unite(node->outputs()[i], body->outputs()[i + 1]);
    }
    return;
  }
  if (node->kind() == prim::SetAttr || (isOpaque(node) && !changesMode(node))) {
    everything_ = true;
  }
  const auto* schema = node->maybeSchema();
  if (schema && schema->is_mutable()) {
    for (size_t i = 0; i < node->inputs().size() && i < schema->arguments().size(); ++i) {
      const auto* alias = schema->arguments()[i].alias_info();
      if (!alias || !alias->isWrite()) {
        continue;
      }
      write(node->input(i));
      for (const Value* output : node->outputs()) {
        unite(node->input(i), output);
      }
      // What is put into a container is in it from then on.
      if (node->input(i)->type()->kind() != c10::TypeKind::TensorType) {
        uniteAll(node);
      }
    }
    return;
  }
  if (writesStatistics(node)) {
    for (const char* name : {"running_mean", "running_var"}) {
      if (node->hasNamedInput(name)) {
        write(node->namedInput(name));
      }
    }
  }
  if (passesStorage(node)) {
    uniteAll(node);
  }
}

}  // namespace faultline
