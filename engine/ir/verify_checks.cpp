#include "engine/ir/verify_checks.h"

#include "engine/ir/verify_rules.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;

// Erases what types of tensors say, to any depth.
c10::TypePtr withoutHints(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) {
    return c10::TensorType::get();
  }
  const auto inner = type->containedTypes();
  const bool plain = type->kind() == c10::TypeKind::ClassType ||
                     type->kind() == c10::TypeKind::InterfaceType ||
                     type->kind() == c10::TypeKind::FunctionType || inner.empty();
  if (plain) {
    return type;
  }
  std::vector<c10::TypePtr> erased;
  for (const c10::TypePtr& part : inner) {
    erased.push_back(withoutHints(part));
  }
  return type->withContained(std::move(erased));
}

}  // namespace

std::string counts(const Node& node, std::optional<size_t> inputs, std::optional<size_t> outputs,
                   size_t blocks) {
  if (inputs && node.inputs().size() != *inputs) {
    return fmt::format("{} inputs, expected {}", node.inputs().size(), *inputs);
  }
  if (outputs && node.outputs().size() != *outputs) {
    return fmt::format("{} outputs, expected {}", node.outputs().size(), *outputs);
  }
  if (node.blocks().size() != blocks) {
    return fmt::format("{} blocks, expected {}", node.blocks().size(), blocks);
  }
  return "";
}

std::string arrives(const std::string& what, const c10::TypePtr& actual, const c10::TypePtr& formal) {
  return typeFits(actual, formal)
             ? ""
             : fmt::format("{} is {}, expected {}", what, writeType(*actual), writeType(*formal));
}

std::string inputIs(const Node& node, size_t i, const c10::TypePtr& type) {
  return arrives(fmt::format("input {} (%{})", i, node.inputs()[i]->debugName()), node.inputs()[i]->type(),
                 type);
}

std::string first(std::initializer_list<std::function<std::string()>> checks) {
  for (const auto& check : checks) {
    std::string problem = check();
    if (!problem.empty()) {
      return problem;
    }
  }
  return "";
}

std::string hasAttribute(const Node& node, c10::Symbol name, AttributeKind kind, const char* what) {
  const bool there = node.hasAttribute(name) && node.kindOf(name) == kind;
  return there ? "" : fmt::format("needs attribute '{}' ({})", name.toUnqualString(), what);
}

bool typeFits(const c10::TypePtr& actual, const c10::TypePtr& formal) {
  return actual->isSubtypeOf(*formal) || withoutHints(actual)->isSubtypeOf(*withoutHints(formal));
}

}  // namespace faultline
