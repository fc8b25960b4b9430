#include <c10/util/StringUtil.h>
#include <fmt/format.h>

#include "engine/ir/stride_text.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

std::string starOr(const std::optional<int64_t>& value) { return value ? std::to_string(*value) : "*"; }

std::string listOf(const PartialSizes& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : ", ") + starOr(values[i]);
  }
  return text + "]";
}

// The long form, for what the short one cannot say: "index:stride:contiguous" in memory order, innermost
// first.
std::string propertiesOf(const std::vector<std::optional<c10::Stride>>& entries) {
  std::string text = "stride_properties=[";
  for (size_t i = 0; i < entries.size(); ++i) {
    text += i == 0 ? "" : ", ";
    if (!entries[i]) {
      text += "*";
      continue;
    }
    const auto& [index, contiguous, stride] =
        std::tie(entries[i]->stride_index_, entries[i]->contiguous_, entries[i]->stride_);
    text += fmt::format("{}:{}:{}", index ? std::to_string(*index) : "*",
                        stride ? std::to_string(*stride) : "*", contiguous ? (*contiguous ? "1" : "0") : "*");
  }
  return text + "]";
}

void addStrides(const c10::TensorType& type, std::vector<std::string>& fields) {
  const auto& properties = type.stride_properties();
  const auto rank = type.sizes().size();
  if (properties == c10::VaryingShape<c10::Stride>(rank)) {
    return;
  }
  if (!properties.size()) {
    fields.push_back("strides=*");
    return;
  }
  if (rank && properties.size() == rank && type.strides().size() == rank) {
    const PartialSizes strides = *type.strides().sizes();
    const bool any =
        std::any_of(strides.begin(), strides.end(), [](const auto& stride) { return stride.has_value(); });
    if (any && strideProperties(*type.sizes().sizes(), strides) == properties) {
      fields.push_back("strides=" + listOf(strides));
      return;
    }
  }
  fields.push_back(propertiesOf(*properties.sizes()));
}

std::string tensorTypeText(const c10::TensorType& type) {
  const auto rank = type.sizes().size();
  std::string text = type.scalarType() ? c10::toString(*type.scalarType()) : "Tensor";
  if (type.scalarType() && !rank) {
    text += "Tensor";
  }
  std::vector<std::string> fields;
  if (rank) {
    const PartialSizes sizes = *type.sizes().sizes();
    for (const auto& size : sizes) {
      fields.push_back(starOr(size));
    }
    if (*rank == 0 && !type.scalarType()) {
      fields.push_back("rank=0");  // "Tensor(requires_grad=0)" is one of unknown rank
    }
  }
  addStrides(type, fields);
  if (type.requiresGrad()) {
    fields.push_back(*type.requiresGrad() ? "requires_grad=1" : "requires_grad=0");
  }
  if (type.device()) {
    fields.push_back("device=" + type.device()->str());
  }
  if (!fields.empty() || (rank && *rank == 0)) {
    text += "(" + c10::Join(", ", fields) + ")";
  }
  if (!type.undefined()) {
    return text + "[MaybeUndefined]";
  }
  return *type.undefined() ? text + "[Undefined]" : text;
}

std::string joined(at::ArrayRef<c10::TypePtr> types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    text += (i == 0 ? "" : ", ") + writeType(*types[i]);
  }
  return text;
}

std::string tupleTypeText(const c10::TupleType& type) {
  if (!type.schema()) {
    return "(" + joined(type.elements()) + ")";
  }
  std::string text = "NamedTuple";
  if (type.name()) text += "[" + type.name()->qualifiedName() + "]";
  text += "(";
  for (size_t i = 0; i < type.elements().size(); ++i) {
    text += fmt::format("{}{} : {}", i == 0 ? "" : ", ", type.schema()->arguments()[i].name(),
                        writeType(*type.elements()[i]));
  }
  return text + ")";
}

}  // namespace

std::string writeType(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return tensorTypeText(type.expectRef<c10::TensorType>());
    case c10::TypeKind::ListType:
      return joined(type.containedTypes()) + "[]";
    case c10::TypeKind::OptionalType:
      return writeType(*type.expectRef<c10::OptionalType>().getElementType()) + "?";
    case c10::TypeKind::FutureType:
      return "Future[" + joined(type.containedTypes()) + "]";
    case c10::TypeKind::AwaitType:
      return "Await[" + joined(type.containedTypes()) + "]";
    case c10::TypeKind::RRefType:
      return "RRef[" + joined(type.containedTypes()) + "]";
    case c10::TypeKind::DictType:
      return "Dict(" + joined(type.containedTypes()) + ")";
    case c10::TypeKind::UnionType:
      return "Union[" + joined(type.containedTypes()) + "]";
    case c10::TypeKind::TupleType:
      return tupleTypeText(type.expectRef<c10::TupleType>());
    case c10::TypeKind::FunctionType:
      return "Function";
    default:
      return type.str();
  }
}

}  // namespace faultline
