#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>

#include "engine/ir/attribute_reader.h"
#include "engine/ir/verify_rules.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;

bool agrees(const std::optional<int64_t>& said, int64_t actual) { return !said || *said == actual; }

// Unlike the types of computed values, that of a constant can be held against the value.
std::string tensorProblem(const at::Tensor& tensor, const c10::TensorType& type) {
  if (!tensor.defined()) {
    return type.undefined().value_or(true) ? "" : "an undefined tensor whose type says it is defined";
  }
  const auto sizes = type.sizes();
  bool fits = !type.undefined().value_or(false) &&
              (!type.scalarType() || *type.scalarType() == tensor.scalar_type()) &&
              (!type.device() || *type.device() == tensor.device()) && agrees(sizes.size(), tensor.dim());
  for (size_t i = 0; fits && sizes.size() && i < *sizes.size(); ++i) {
    fits = agrees(sizes[i], tensor.size(static_cast<int64_t>(i)));
  }
  return fits ? ""
              : fmt::format("the type is {}, the value {}", writeType(type),
                            writeType(*c10::TensorType::create(tensor)));
}

// The kind of attribute that libtorch keeps a constant of this type in; nullopt: it has no constants of this
// type.
std::optional<AttributeKind> expectedKind(const c10::Type& type, AttributeKind found) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return AttributeKind::t;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::IntType:
      return AttributeKind::i;
    case c10::TypeKind::FloatType:
      return AttributeKind::f;
    case c10::TypeKind::ComplexType:
      return AttributeKind::c;
    case c10::TypeKind::NumberType: {
      const bool number = found == AttributeKind::f || found == AttributeKind::c;
      return number ? found : AttributeKind::i;
    }
    case c10::TypeKind::StringType:
    case c10::TypeKind::DeviceObjType:
      return AttributeKind::s;
    case c10::TypeKind::ListType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::DictType:
    case c10::TypeKind::GeneratorType:
    case c10::TypeKind::StreamObjType:
    case c10::TypeKind::EnumType:
    case c10::TypeKind::ClassType:
      return AttributeKind::ival;
    default:
      return std::nullopt;
  }
}

std::string valueProblem(const Node& node, AttributeKind kind) {
  const c10::TypePtr& type = node.output()->type();
  if (kind == AttributeKind::t) {
    return tensorProblem(node.t(c10::attr::value), type->expectRef<c10::TensorType>());
  }
  if (kind == AttributeKind::ival && !typeFits(node.ival(c10::attr::value).type(), type)) {
    return fmt::format("the type is {}, the value {}", writeType(*type),
                       writeType(*node.ival(c10::attr::value).type()));
  }
  try {
    (void)torch::jit::toIValue(node.output());
    return "";
  } catch (const std::exception&) {
    return fmt::format("torch cannot make a value of type {} from it", writeType(*type));
  }
}

}  // namespace

std::string constantProblem(const Node& node) {
  if (!node.inputs().empty() || node.outputs().size() != 1 || !node.blocks().empty()) {
    return fmt::format(
        "a constant has no inputs, no blocks and one output, found {} inputs, {} blocks and {} outputs",
        node.inputs().size(), node.blocks().size(), node.outputs().size());
  }
  const c10::Type& type = *node.output()->type();
  if (type.kind() == c10::TypeKind::FunctionType) {
    return node.hasAttribute(c10::attr::name) ? "" : "a function needs attribute 'name'";
  }
  if (!node.hasAttribute(c10::attr::value)) {
    const bool none = type.kind() == c10::TypeKind::NoneType || type.kind() == c10::TypeKind::OptionalType;
    return none ? "" : fmt::format("a constant of type {} needs attribute 'value'", writeType(type));
  }
  const AttributeKind found = node.kindOf(c10::attr::value);
  const auto expected = expectedKind(type, found);
  if (!expected) {
    return fmt::format("there are no constants of type {}", writeType(type));
  }
  if (found != *expected) {
    return fmt::format("a constant of type {} keeps its value as '{}', found '{}'", writeType(type),
                       attributeKindName(*expected), attributeKindName(found));
  }
  return valueProblem(node, found);
}

}  // namespace faultline
