#include <fmt/format.h>

#include "engine/support/check.h"
#include "generators/case/spec_layout.h"

namespace faultline {
namespace {

c10::TypePtr completeType(const InputSpec& spec) {
  auto layout = specLayout(spec);
  FAULTLINE_CHECK(layout.has_value(), "the type of a spec that is none: " + layout.error().message);
  return c10::TensorType::create(spec.dtype, at::Device(spec.device), c10::VaryingShape<int64_t>(spec.sizes),
                                 c10::VaryingShape<int64_t>(layout->strides), spec.requires_grad);
}

// A list's elements have one type; None among tensors makes it optional.
std::optional<c10::TypePtr> commonType(const std::vector<InputSpec>& elements) {
  if (elements.empty()) return c10::TensorType::get();
  c10::TypePtr common = inputType(elements.front());
  for (const InputSpec& element : elements) {
    auto unified = c10::unifyTypes(common, inputType(element));
    if (!unified) return std::nullopt;
    common = *unified;
  }
  return common;
}

std::string whyTensorNotFits(const InputSpec& spec, const c10::TensorType& type) {
  auto layout = specLayout(spec);
  if (!layout) return layout.error().message;
  auto differs = [](std::string_view what, const auto& declared, const auto& given) {
    return fmt::format("{} is declared {}, the input has {}", what, declared, given);
  };
  if (type.scalarType() && *type.scalarType() != spec.dtype) {
    return differs("the dtype", c10::toString(*type.scalarType()), c10::toString(spec.dtype));
  }
  if (type.device() && type.device()->type() != spec.device) {
    return differs("the device", type.device()->str(), at::Device(spec.device).str());
  }
  if (type.requiresGrad() && *type.requiresGrad() != spec.requires_grad) {
    return differs("requires_grad", int{*type.requiresGrad()}, int{spec.requires_grad});
  }
  if (type.dim() && *type.dim() != spec.sizes.size()) {
    return differs("the number of dimensions", *type.dim(), spec.sizes.size());
  }
  for (size_t d = 0; type.dim() && d < spec.sizes.size(); ++d) {
    if (auto size = type.sizes()[d]; size && *size != spec.sizes[d]) {
      return differs(fmt::format("size {}", d), *size, spec.sizes[d]);
    }
  }
  for (size_t d = 0; type.strides().size() && d < spec.sizes.size(); ++d) {
    // The stride of a dimension of one element says nothing.
    if (layout->elements == 0 || spec.sizes[d] == 1) continue;
    if (auto stride = type.strides()[d]; stride && *stride != layout->strides[d]) {
      return differs(fmt::format("stride {}", d), *stride, layout->strides[d]);
    }
  }
  if (type.undefined().value_or(false)) return "the type is that of an undefined tensor";
  return "";
}

std::string whyElementsNotFit(const InputSpec& spec, const c10::Type& type,
                              const std::vector<InputSpec>& earlier) {
  if (spec.kind == InputSpec::Kind::Tuple && spec.elements.size() != type.containedTypes().size()) {
    return fmt::format("a tuple of {} is declared, the input has {}", type.containedTypes().size(),
                       spec.elements.size());
  }
  for (size_t i = 0; i < spec.elements.size(); ++i) {
    size_t contained = spec.kind == InputSpec::Kind::Tuple ? i : 0;
    std::string why = whyNotFits(spec.elements[i], *type.containedType(contained), earlier);
    if (!why.empty()) return fmt::format("element {}: {}", i, why);
  }
  return "";
}

}  // namespace

c10::TypePtr inputType(const InputSpec& spec, bool complete) {
  switch (spec.kind) {
    case InputSpec::Kind::Tensor:
      return complete ? completeType(spec) : c10::TensorType::get();
    case InputSpec::Kind::SameAs:
      return c10::TensorType::get();
    case InputSpec::Kind::Int:
      return c10::IntType::get();
    case InputSpec::Kind::Double:
      return c10::FloatType::get();
    case InputSpec::Kind::Bool:
      return c10::BoolType::get();
    case InputSpec::Kind::String:
      return c10::StringType::get();
    case InputSpec::Kind::None:
      return c10::NoneType::get();
    case InputSpec::Kind::List: {
      auto common = commonType(spec.elements);
      return c10::ListType::create(common ? *common : c10::AnyType::get());
    }
    case InputSpec::Kind::Tuple:
      break;
  }
  std::vector<c10::TypePtr> elements;
  for (const InputSpec& element : spec.elements) elements.push_back(inputType(element, complete));
  return c10::TupleType::create(std::move(elements));
}

std::string whyNotFits(const InputSpec& spec, const c10::Type& type, const std::vector<InputSpec>& earlier) {
  using Kind = InputSpec::Kind;
  if (spec.kind == Kind::SameAs) {
    if (spec.same_as >= earlier.size()) return fmt::format("@{} is not an earlier input", spec.same_as);
    // Only what stood before that input counts for it, so a circle ends.
    auto end = earlier.begin() + static_cast<std::ptrdiff_t>(spec.same_as);
    return whyNotFits(*end, type, {earlier.begin(), end});
  }
  if (type.kind() == c10::TypeKind::AnyType) return "";
  if (type.kind() == c10::TypeKind::OptionalType) {
    if (spec.kind == Kind::None) return "";
    return whyNotFits(spec, *type.containedType(0), earlier);
  }
  if (type.kind() == c10::TypeKind::UnionType) {
    for (const c10::TypePtr& member : type.containedTypes()) {
      if (whyNotFits(spec, *member, earlier).empty()) return "";
    }
  }
  if (type.kind() == c10::TypeKind::NumberType && (spec.kind == Kind::Int || spec.kind == Kind::Double))
    return "";
  if (spec.kind == Kind::Tensor && type.kind() == c10::TypeKind::TensorType) {
    return whyTensorNotFits(spec, type.expectRef<c10::TensorType>());
  }
  bool list = spec.kind == Kind::List && type.kind() == c10::TypeKind::ListType;
  bool tuple = spec.kind == Kind::Tuple && type.kind() == c10::TypeKind::TupleType;
  if (list || tuple) return whyElementsNotFit(spec, type, earlier);
  c10::TypePtr own = inputType(spec);
  return own->kind() == type.kind()
             ? ""
             : fmt::format("{} is declared, the input is {}", type.repr_str(), own->repr_str());
}

}  // namespace faultline
