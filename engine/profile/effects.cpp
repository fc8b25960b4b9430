#include "engine/profile/effects.h"

#include <algorithm>

#include <torch/csrc/jit/runtime/operator.h>

namespace faultline::profile {
namespace {

using c10::AliasInfo;

bool isContainer(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::ListType:
    case c10::TypeKind::DictType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::AnyType:
    case c10::TypeKind::VarType:
    case c10::TypeKind::ClassType:
      return true;
    case c10::TypeKind::OptionalType:
      return isContainer(type->castRaw<c10::OptionalType>()->getElementType());
    default:
      return false;
  }
}

bool holdsOnlyNumbers(const c10::TypePtr& type) {
  auto list = type->cast<c10::ListType>();
  if (!list) return false;
  switch (list->getElementType()->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::ComplexType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::SymIntType:
      return true;
    default:
      return false;
  }
}

bool writesContained(const AliasInfo& alias) {
  return std::any_of(alias.containedTypes().begin(), alias.containedTypes().end(),
                     [](const AliasInfo& inner) { return inner.isWrite() || writesContained(inner); });
}

bool shareSet(const AliasInfo& a, const AliasInfo& b) {
  return std::any_of(a.beforeSets().begin(), a.beforeSets().end(),
                     [&](const auto& set) { return b.beforeSets().count(set) != 0; });
}

}  // namespace

Effects::Effects() {
  opaque_.opaque = true;
  auto row = [this](const char* name) -> Correction& {
    return corrections_[c10::Symbol::fromQualString(name)];
  };
#define METADATA(name, rank) \
  row(name).metadata = true; \
  row(name).keeps_rank = (rank);
#define GRADIENT(name) row(name).gradient = true;
#define DATA(name) row(name).data = true;
#define SAME(name) row(name).same = true;
#define VIEW(name) row(name).view = true;
#define ANY(name) row(name).any = true;
#define DETACH(name) row(name).detach = true;
#include "engine/profile/effects.def"
}

const OpEffect& Effects::of(const Node* node) {
  const torch::jit::Operator* op = node->maybeOperator();
  if (op == nullptr) return opaque_;
  const c10::AliasAnalysisKind kind = op->aliasAnalysisKind();
  if (kind != c10::AliasAnalysisKind::FROM_SCHEMA && kind != c10::AliasAnalysisKind::PURE_FUNCTION)
    return opaque_;
  const c10::FunctionSchema& schema = op->schema();
  if (schema.is_vararg() || schema.is_varret()) return opaque_;
  auto it = by_schema_.find(&schema);
  if (it == by_schema_.end()) it = by_schema_.emplace(&schema, classify(node, schema)).first;
  return it->second;
}

OpEffect Effects::classify(const Node* node, const c10::FunctionSchema& schema) const {
  OpEffect effect;
  Correction fix;
  if (auto it = corrections_.find(node->kind()); it != corrections_.end()) fix = it->second;
  const auto& arguments = schema.arguments();
  const auto& returns = schema.returns();
  const bool returns_containers = std::any_of(returns.begin(), returns.end(), [](const c10::Argument& r) {
    return isContainer(r.type()) && !holdsOnlyNumbers(r.type());
  });

  effect.reads_list.resize(arguments.size(), !returns_containers && !fix.any);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const uint16_t operand = static_cast<uint16_t>(i);
    const AliasInfo* alias = arguments[i].alias_info();
    if (alias == nullptr) continue;
    effect.reads_list[i] = false;
    if (writesContained(*alias)) return opaque_;
    if (alias->isWrite()) {
      const bool first = i == 0;
      WriteEffect write{operand, first && fix.data, arguments[i].is_out(), false,
                        first && (fix.gradient || fix.data)};
      if (first && (fix.metadata || fix.data)) {
        write.keeps_rank = fix.metadata && fix.keeps_rank && !write.shape;
        write.shape = true;
      }
      effect.writes.push_back(write);
    }
  }

  for (size_t r = 0; r < returns.size(); ++r) {
    ResultEffect result;
    const AliasInfo* alias = returns[r].alias_info();
    if (alias != nullptr && alias->containedTypes().size() == 1 && alias->beforeSets().empty()) {
      alias = &alias->containedTypes()[0];
      result.kind = ResultKind::Elements;
    }
    if (alias != nullptr) {
      size_t match = arguments.size();
      for (size_t i = 0; i < arguments.size() && !alias->isWildcardBefore(); ++i) {
        if (arguments[i].alias_info() != nullptr && shareSet(*arguments[i].alias_info(), *alias)) {
          match = i;
          break;
        }
      }
      result.operand = static_cast<uint16_t>(match);
      if (match == arguments.size()) {
        result = {ResultKind::Anything, 0};
      } else if (result.kind != ResultKind::Elements) {
        result.kind = alias->isWrite() ? ResultKind::Self : ResultKind::View;
      }
    }
    if (r == 0 && result.kind != ResultKind::Self) {
      if (fix.same) result = {ResultKind::MaybeSelf, 0};
      if (fix.view) result = {isContainer(returns[r].type()) ? ResultKind::Elements : ResultKind::View, 0};
      if (fix.detach) result = {ResultKind::Detached, 0};
    }
    if (fix.any) result = {ResultKind::Anything, 0};
    if (result.kind == ResultKind::Fresh && isContainer(returns[r].type()) &&
        !holdsOnlyNumbers(returns[r].type())) {
      // What is in a new container may be what was in the old one; only lists made of single tensors are new
      // inside.
      const bool takes_containers = std::any_of(
          arguments.begin(), arguments.end(),
          [](const c10::Argument& a) { return isContainer(a.type()) && !holdsOnlyNumbers(a.type()); });
      if (takes_containers) result = {ResultKind::Anything, 0};
    }
    effect.results.push_back(result);
  }

  // An operand that turns into a wildcard, and everything that an untracked result may reach.
  const bool anything = std::any_of(effect.results.begin(), effect.results.end(),
                                    [](const ResultEffect& r) { return r.kind == ResultKind::Anything; });
  for (size_t i = 0; i < arguments.size(); ++i) {
    const AliasInfo* alias = arguments[i].alias_info();
    const bool wildcard_after = alias != nullptr && alias->isWildcardAfter();
    const bool listed =
        std::any_of(effect.results.begin(), effect.results.end(), [&](const ResultEffect& result) {
          return result.kind == ResultKind::Elements && result.operand == i;
        });
    const bool reached = (anything && (alias != nullptr || fix.any));
    if ((wildcard_after && !listed) || reached) effect.escapes.push_back(static_cast<uint16_t>(i));
  }
  return effect;
}

}  // namespace faultline::profile
