#include "engine/ir/value_writer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "engine/ir/attribute_reader.h"
#include "engine/ir/base64.h"
#include "engine/ir/element.h"
#include "engine/ir/tensor_data.h"
#include "engine/ir/text.h"
#include "engine/support/check.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;

// More elements than a person would want to read are written as bytes.
constexpr size_t kReadableElements = 256;

template <class Range, class Text>
std::string bracketed(const Range& range, Text text) {
  std::string list = "[";
  bool first = true;
  for (const auto& element : range) {
    list += first ? "" : ", ";
    list += text(element);
    first = false;
  }
  return list + "]";
}

std::string complexValueText(c10::complex<double> value) {
  return elementText(c10::ScalarType::ComplexDouble, reinterpret_cast<const char*>(&value));
}

std::string intListText(at::IntArrayRef values) {
  return bracketed(values, [](int64_t value) { return std::to_string(value); });
}

bool isContiguous(const at::Tensor& tensor) {
  int64_t expected = 1;
  for (int64_t dim = tensor.dim(); dim > 0; --dim) {
    if (tensor.stride(dim - 1) != expected) {
      return false;
    }
    expected *= std::max<int64_t>(1, tensor.size(dim - 1));
  }
  return true;
}

std::string dataText(const at::Tensor& plain, bool contiguous) {
  const size_t size = plain.element_size();
  const size_t span = storageSpan(plain.sizes(), plain.strides(), size).value_or(0);
  const auto reachable = reachableElements(plain.sizes(), plain.strides(), span);
  // What lies between the elements is not part of the value, and may never have been written.
  std::string bytes(span * size, '\0');
  const char* data = static_cast<const char*>(plain.const_data_ptr());
  for (size_t i = 0; i < span; ++i) {
    if (reachable[i] != 0) {
      std::copy_n(data + i * size, size, bytes.begin() + static_cast<std::ptrdiff_t>(i * size));
    }
  }
  if (span > kReadableElements || !hasElementText(plain.scalar_type())) {
    return "base64=\"" + base64Encode(bytes) + "\"";
  }
  std::string text = contiguous ? "[" : "storage=[";
  for (size_t i = 0; i < span; ++i) {
    text += i == 0 ? "" : ", ";
    text += elementText(plain.scalar_type(), bytes.data() + i * size);
  }
  return text + "]";
}

// Same type, element types included: then the elements need no annotation.
bool isOfType(const c10::IValue& value, const c10::Type& type) {
  if (value.isList()) {
    return type.kind() == c10::TypeKind::ListType &&
           *value.toList().elementType() == *type.expectRef<c10::ListType>().getElementType();
  }
  if (value.isGenericDict()) {
    return type.kind() == c10::TypeKind::DictType &&
           *value.toGenericDict().keyType() == *type.expectRef<c10::DictType>().getKeyType() &&
           *value.toGenericDict().valueType() == *type.expectRef<c10::DictType>().getValueType();
  }
  if (value.isTuple()) {
    if (type.kind() != c10::TypeKind::TupleType) {
      return false;
    }
    const auto& tuple = type.expectRef<c10::TupleType>();
    const auto own = value.type()->expect<c10::TupleType>();
    return tuple.elements().size() == value.toTupleRef().elements().size() &&
           (own->schema() == nullptr) == (tuple.schema() == nullptr) &&
           (own->schema() == nullptr || *own == tuple);
  }
  return true;
}

std::string dictValueText(const c10::IValue& value, const c10::DictType& type) {
  std::string text = "{";
  for (const auto& entry : value.toGenericDict()) {
    text += text.size() == 1 ? "" : ", ";
    text +=
        valueText(entry.key(), *type.getKeyType()) + ": " + valueText(entry.value(), *type.getValueType());
  }
  return text + "}";
}

std::string tupleValueText(const c10::IValue& value, const c10::Type& type) {
  std::string text = "(";
  const auto& elements = value.toTupleRef().elements();
  for (size_t i = 0; i < elements.size(); ++i) {
    const bool known = type.kind() == c10::TypeKind::TupleType;
    text += i == 0 ? "" : ", ";
    text += valueText(elements[i], known ? *type.expectRef<c10::TupleType>().elements()[i]
                                         : static_cast<const c10::Type&>(*c10::AnyType::get()));
  }
  return text + (elements.size() == 1 ? ",)" : ")");
}

std::string containerText(const c10::IValue& value, const c10::Type& type) {
  if (value.isList()) {
    const c10::TypePtr element = value.toList().elementType();
    return bracketed(value.toListRef(), [&](const c10::IValue& part) { return valueText(part, *element); });
  }
  return value.isTuple() ? tupleValueText(value, type)
                         : dictValueText(value, type.expectRef<c10::DictType>());
}

std::string plainText(const torch::jit::Node& node, c10::Symbol name, AttributeKind kind) {
  switch (kind) {
    case AttributeKind::f:
      return floatText(node.f(name));
    case AttributeKind::fs:
      return bracketed(node.fs(name), [](double value) { return floatText(value); });
    case AttributeKind::c:
      return complexValueText(node.c(name));
    case AttributeKind::cs:
      return bracketed(node.cs(name), complexValueText);
    case AttributeKind::i:
      return std::to_string(node.i(name));
    case AttributeKind::is:
      return intListText(node.is(name));
    case AttributeKind::s:
      return quotedText(node.s(name));
    case AttributeKind::ss:
      return bracketed(node.ss(name), [](const std::string& value) { return quotedText(value); });
    case AttributeKind::t:
      return tensorText(node.t(name));
    case AttributeKind::ts:
      return bracketed(node.ts(name), tensorText);
    case AttributeKind::ty:
      return writeType(*node.ty(name));
    case AttributeKind::tys:
      return bracketed(node.tys(name), [](const c10::TypePtr& type) { return writeType(*type); });
    case AttributeKind::ival:
      return valueText(node.ival(name), *c10::AnyType::get());
    case AttributeKind::g:
    case AttributeKind::gs:
      break;
  }
  FAULTLINE_CHECK(false, std::string("attribute '") + name.toUnqualString() + "' of " +
                             node.kind().toQualString() + " has a kind that no TorchScript node has");
  return "";
}

bool startsLikeATuple(const torch::jit::Node& node, c10::Symbol name, AttributeKind kind) {
  if (kind == AttributeKind::ty) {
    return writeType(*node.ty(name)).front() == '(';
  }
  return kind == AttributeKind::tys &&
         std::any_of(node.tys(name).begin(), node.tys(name).end(),
                     [](const c10::TypePtr& type) { return writeType(*type).front() == '('; });
}

// The rules of the reader (attribute_reader.cpp), backwards.
bool needsKind(const torch::jit::Node& node, c10::Symbol name, AttributeKind kind, const std::string& text) {
  const bool empty_list = text == "[]" && kind != AttributeKind::is;
  if (kind == AttributeKind::ival || empty_list || startsLikeATuple(node, name, kind)) {
    return true;
  }
  if (node.kind() != c10::prim::Constant || name != c10::attr::value || node.outputs().size() != 1) {
    return false;
  }
  switch (node.output()->type()->kind()) {
    case c10::TypeKind::ListType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::DictType:
      return true;
    case c10::TypeKind::FloatType:
      return kind == AttributeKind::i;
    case c10::TypeKind::ComplexType:
      return kind == AttributeKind::i || kind == AttributeKind::f;
    default:
      return false;
  }
}

}  // namespace

std::string tensorText(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return "tensor(undefined)";
  }
  if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
    return fmt::format("tensor(unsupported {})", quotedText(tensor.toString()));
  }
  const bool meta = tensor.device().is_meta();
  const at::Tensor plain = meta ? tensor : plainData(tensor);
  const bool contiguous = isContiguous(plain);
  std::vector<std::string> fields;
  for (const int64_t size : plain.sizes()) {
    fields.push_back(std::to_string(size));
  }
  if (!contiguous) {
    fields.push_back("strides=" + intListText(plain.strides()));
  }
  if (tensor.requires_grad()) {
    fields.push_back("requires_grad=1");
  }
  if (!tensor.device().is_cpu()) {
    fields.push_back("device=" + tensor.device().str());
  }
  const std::string type =
      std::string(c10::toString(tensor.scalar_type())) + "(" + c10::Join(", ", fields) + ")";
  return meta ? "tensor(" + type + ")" : "tensor(" + type + ", " + dataText(plain, contiguous) + ")";
}

std::string valueText(const c10::IValue& value, const c10::Type& expected) {
  if (expected.kind() == c10::TypeKind::OptionalType && !value.isNone()) {
    return valueText(value, *expected.expectRef<c10::OptionalType>().getElementType());
  }
  if (value.isNone()) {
    return "None";
  }
  if (value.isInt()) {
    return std::to_string(value.toInt());
  }
  if (value.isBool()) {
    return value.toBool() ? "True" : "False";
  }
  if (value.isDouble()) {
    return floatText(value.toDouble());
  }
  if (value.isComplexDouble()) {
    return complexValueText(value.toComplexDouble());
  }
  if (value.isString()) {
    return quotedText(value.toStringRef());
  }
  if (value.isTensor()) {
    return tensorText(value.toTensor());
  }
  if (value.isDevice()) {
    return fmt::format("torch.device({})", quotedText(value.toDevice().str()));
  }
  if (!value.isList() && !value.isTuple() && !value.isGenericDict()) {
    return fmt::format("object({})", quotedText(value.tagKind()));
  }
  if (isOfType(value, expected)) {
    return containerText(value, expected);
  }
  const bool open = expected.kind() == c10::TypeKind::AnyType || expected.kind() == c10::TypeKind::UnionType;
  if (open && value.isTuple() && value.type()->expectRef<c10::TupleType>().schema() == nullptr) {
    return containerText(value, expected);
  }
  const c10::TypePtr type = value.type();
  return fmt::format("annotate({}, {})", writeType(*type), containerText(value, *type));
}

std::string attributeName(c10::Symbol name, AttributeKind kind, bool needs_kind) {
  const std::string text = name.toUnqualString();
  return needs_kind || !isKnownAttribute(text) ? text + ":" + attributeKindName(kind) : text;
}

std::string attributeText(const torch::jit::Node& node, c10::Symbol name) {
  const AttributeKind kind = node.kindOf(name);
  const bool constant =
      node.kind() == c10::prim::Constant && name == c10::attr::value && node.outputs().size() == 1;
  if (constant && kind == AttributeKind::ival) {
    const c10::Type& type = *node.output()->type();
    const c10::IValue& value = node.ival(name);
    if ((value.isList() || value.isTuple() || value.isGenericDict()) && isOfType(value, type)) {
      return attributeName(name, kind, false) + "=" + valueText(value, type);
    }
  }
  const std::string text = plainText(node, name, kind);
  return attributeName(name, kind, needsKind(node, name, kind, text)) + "=" + text;
}

}  // namespace faultline
