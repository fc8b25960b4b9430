#include "engine/graph_break/legality.h"

#include <set>

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "engine/autodiff/differentiability.h"

namespace faultline {

namespace {

using torch::jit::Block;
namespace prim = torch::jit::prim;

// Their schemas do not say that they update the running statistics.
bool writesStatistics(const Node* node) {
  static const std::set<std::string> kinds = {
      "aten::batch_norm",       "aten::native_batch_norm", "aten::_batch_norm_impl_index",
      "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::instance_norm"};
  if (!kinds.count(node->kind().toQualString())) {
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
  static const std::set<c10::Symbol> plain = {prim::Enter,
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
  if (changesMode(node) || plain.count(node->kind())) {
    return false;
  }
  const auto* op = node->maybeOperator();
  return !op || op->aliasAnalysisKind() == c10::AliasAnalysisKind::CONSERVATIVE;
}

std::optional<Obstacle> search(const WorkingCopy& work, const Block* block) {
  for (const Node* node : block->nodes()) {
    const auto* schema = node->maybeSchema();
    if ((schema && schema->is_mutable()) || writesStatistics(node) || node->kind() == prim::SetAttr) {
      return Obstacle{BreakReason::mutation, work.names.of(node)};
    }
    if (isOpaque(node)) {
      return Obstacle{BreakReason::opaque, work.names.of(node)};
    }
    for (const Block* inner : node->blocks()) {
      if (auto found = search(work, inner)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Obstacle> findObstacle(const WorkingCopy& work) { return search(work, work.graph->block()); }

}  // namespace faultline
