#include "engine/autodiff/differentiability.h"

#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>

#include "engine/autodiff/formulas.h"
#include "engine/autodiff/reverse.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

c10::Symbol symbol(const char* name) { return c10::Symbol::fromQualString(name); }

std::unordered_set<c10::Symbol> symbols(std::initializer_list<const char*> names) {
  std::unordered_set<c10::Symbol> result;
  for (const char* name : names) {
    result.insert(symbol(name));
  }
  return result;
}

const std::set<std::pair<c10::Symbol, std::string>>& cutOperands() {
  static const std::set<std::pair<c10::Symbol, std::string>> rows = {
#define FAULTLINE_CUT_OPERAND(op, argument) {symbol(op), argument},
#define FAULTLINE_CUT_RESULT(op, index)
#include "engine/autodiff/operands.def"
#undef FAULTLINE_CUT_OPERAND
#undef FAULTLINE_CUT_RESULT
  };
  return rows;
}

const std::set<std::pair<c10::Symbol, size_t>>& cutResults() {
  static const std::set<std::pair<c10::Symbol, size_t>> rows = {
#define FAULTLINE_CUT_OPERAND(op, argument)
#define FAULTLINE_CUT_RESULT(op, index) {symbol(op), index},
#include "engine/autodiff/operands.def"
#undef FAULTLINE_CUT_OPERAND
#undef FAULTLINE_CUT_RESULT
  };
  return rows;
}

bool isPlainConstant(const Value* value) {
  return value->node()->kind() == prim::Constant && !mayHoldTensor(*value->type());
}

// An argument that asks for another dtype makes gradients of another dtype inside the piece, where eager
// casts back between any two nodes.
bool asksForDtype(const Node* node) {
  const auto* schema = node->maybeSchema();
  if (!schema) {
    return false;
  }
  for (size_t i = 0; i < schema->arguments().size() && i < node->inputs().size(); ++i) {
    if (schema->arguments()[i].name() == "dtype" && !node->input(i)->mustBeNone()) {
      return true;
    }
  }
  return false;
}

bool changesDtypeByNature(torch::jit::Symbol kind) {
  return kind == c10::aten::type_as || kind == c10::aten::to ||
         kind == c10::aten::_autocast_to_full_precision || kind == c10::aten::_autocast_to_reduced_precision;
}

bool anyInBlocks(const Node* node, bool (*holds)(const Node*)) {
  for (const Block* block : node->blocks()) {
    for (const Node* inner : block->nodes()) {
      if (holds(inner)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::string schemaName(const Node* node) {
  if (const auto* schema = node->maybeSchema()) {
    return schema->overload_name().empty() ? schema->name() : schema->name() + "." + schema->overload_name();
  }
  return node->kind().toQualString();
}

bool passesGradient(const Node* node, size_t input) {
  bool any_result = false;
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    any_result = any_result || (carriesGradient(node, i) && mayHoldTensor(*node->outputs()[i]->type()));
  }
  if (!any_result && node->kind() != prim::Return) {
    return false;
  }
  const auto* schema = node->maybeSchema();
  if (!schema || input >= schema->arguments().size()) {
    return true;
  }
  static const std::unordered_set<c10::Symbol> kinds = [] {
    std::unordered_set<c10::Symbol> result;
    for (const auto& [kind, argument] : cutOperands()) {
      result.insert(kind);
    }
    return result;
  }();
  return !kinds.count(node->kind()) ||
         !cutOperands().count({node->kind(), schema->arguments()[input].name()});
}

bool carriesGradient(const Node* node, size_t output) { return !cutResults().count({node->kind(), output}); }

bool mayHoldTensor(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::ComplexType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::NoneType:
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::StreamObjType:
    case c10::TypeKind::GeneratorType:
    case c10::TypeKind::FunctionType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::SymFloatType:
    case c10::TypeKind::SymBoolType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
    case c10::TypeKind::QSchemeType:
      return false;
    case c10::TypeKind::ListType:
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::DictType:
      for (const auto& inner : type.containedTypes()) {
        if (mayHoldTensor(*inner)) {
          return true;
        }
      }
      return false;
    default:
      return true;
  }
}

bool isConstantLike(const Node* node) {
  if (node->kind() == prim::Constant) {
    return true;
  }
  if (node->kind() != prim::ListConstruct) {
    return false;
  }
  for (const Value* input : node->inputs()) {
    if (!isPlainConstant(input)) {
      return false;
    }
  }
  // A list has an identity: a copy is as good only where nobody writes into it, keeps it or gives it back.
  for (const auto& use : node->output()->uses()) {
    const auto* schema = use.user->maybeSchema();
    if (!schema || schema->is_mutable() || use.user->kind().is_prim()) {
      return false;
    }
  }
  return !mayHoldTensor(*node->output()->type());
}

bool changesMode(const Node* node) {
  static const c10::Symbol set_grad_enabled = symbol("aten::set_grad_enabled");
  return node->kind() == set_grad_enabled || node->kind() == prim::Enter || node->kind() == prim::Exit ||
         anyInBlocks(node, changesMode);
}

bool isOrdered(const Node* node) {
  if (node->isNondeterministic() || node->hasSideEffects()) {
    return true;
  }
  if (const auto* schema = node->maybeSchema()) {
    for (const auto& argument : schema->arguments()) {
      if (argument.name() == "generator") {
        return true;
      }
    }
  }
  return anyInBlocks(node, isOrdered);
}

bool passesStorage(const Node* node) {
  static const std::unordered_set<c10::Symbol> unannotated =
      symbols({"aten::type_as", "aten::dropout", "aten::alpha_dropout", "aten::feature_dropout",
               "aten::sum_to_size", "aten::einsum", "aten::meshgrid", "aten::broadcast_tensors",
               "aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d", "aten::feature_alpha_dropout",
               "aten::rrelu", "aten::to_dense", "aten::cartesian_prod"});
  const auto* schema = node->maybeSchema();
  if (!schema || !node->blocks().empty() || node->kind().is_prim() || unannotated.count(node->kind())) {
    return true;
  }
  for (const auto& result : schema->returns()) {
    if (result.alias_info()) {
      return true;
    }
  }
  return false;
}

namespace {

// Gives no tensor that a gradient comes from, and asks for nothing that is different inside a piece: no
// formula is needed.
bool needsNoFormula(const Node* node) {
  static const std::unordered_set<c10::Symbol> asks_for_state = symbols(
      {"aten::is_grad_enabled", "aten::is_leaf", "aten::requires_grad", "aten::retains_grad",
       "aten::_version", "aten::is_inference", "aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled"});
  if (!node->maybeSchema() || !node->blocks().empty() || node->kind().is_prim() ||
      asks_for_state.count(node->kind()) || isOrdered(node) || node->outputs().empty()) {
    return false;
  }
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    if (carriesGradient(node, i) && mayHoldTensor(*node->outputs()[i]->type())) {
      return false;
    }
  }
  return true;
}

}  // namespace

CompileChoice compileChoice(Node* node, bool trust_formulas) {
  auto eager = [&](std::string_view why) {
    return CompileChoice{false, fmt::format("{} {}", schemaName(node), why)};
  };
  if (!hasFormula(node) && !needsNoFormula(node)) {
    return eager("has no formula");
  }
  for (const auto values : {node->inputs(), node->outputs()}) {
    for (const Value* value : values) {
      const c10::Type& type = *value->type();
      if (mayHoldTensor(type) && type.kind() != c10::TypeKind::TensorType) {
        return eager("takes or gives tensors in a " + std::string(c10::typeKindToString(type.kind())));
      }
    }
  }
  for (const Value* input : node->inputs()) {
    if (input->type()->kind() == c10::TypeKind::ComplexType) {
      return eager("takes a complex number, and formulas do not conjugate");
    }
    auto constant = torch::jit::toIValue(input);
    if (constant && constant->isTensor() && constant->toTensor().defined() &&
        constant->toTensor().requires_grad()) {
      return eager("uses a constant that requires grad");
    }
  }
  if (changesDtypeByNature(node->kind()) || asksForDtype(node)) {
    return eager("may change the dtype, and eager casts gradients back between any two ops");
  }
  if (!trust_formulas) {
    if (isOrdered(node)) {
      return eager("must keep its place in the random stream");
    }
    if (const FormulaFault* fault = findFormulaFault(node)) {
      return eager(
          fmt::format("has a formula that differs from eager ({}): {}", fault->condition, fault->reason));
    }
  }
  return {};
}

}  // namespace faultline
