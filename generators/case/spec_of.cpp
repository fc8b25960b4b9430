#include "generators/case/spec_of.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "engine/support/check.h"

namespace faultline {
namespace {

std::string bytesOf(const at::Tensor& tensor) {
  at::Tensor flat = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
  return std::string(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes());
}

// The shortest decimal number that gives this float: the double nearest to it prints without noise.
double shortest(float value) {
  double exact = value;
  double read = 0;
  std::string text = fmt::format("{}", value);
  std::from_chars(text.data(), text.data() + text.size(), read);
  return static_cast<float>(read) == value ? read : exact;
}

// Empty optional: some element would not survive as a double (large integers, NaN with its bits).
std::optional<std::vector<double>> exactValues(const at::Tensor& tensor) {
  at::Tensor flat = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg();
  if (flat.is_complex()) flat = at::view_as_real(flat).contiguous();
  std::vector<double> values;
  auto collect = [&](auto* typed) {
    for (int64_t i = 0; i < flat.numel(); ++i) values.push_back(static_cast<double>(typed[i]));
  };
  switch (flat.scalar_type()) {
    case at::kFloat:
      for (int64_t i = 0; i < flat.numel(); ++i) values.push_back(shortest(flat.const_data_ptr<float>()[i]));
      break;
    case at::kDouble:
      collect(flat.const_data_ptr<double>());
      break;
    case at::kHalf:
      collect(flat.const_data_ptr<c10::Half>());
      break;
    case at::kBFloat16:
      collect(flat.const_data_ptr<c10::BFloat16>());
      break;
    case at::kLong:
      collect(flat.const_data_ptr<int64_t>());
      break;
    case at::kInt:
      collect(flat.const_data_ptr<int32_t>());
      break;
    case at::kByte:
      collect(flat.const_data_ptr<uint8_t>());
      break;
    case at::kBool:
      collect(flat.const_data_ptr<bool>());
      break;
    default:
      return std::nullopt;
  }
  bool integral = c10::isIntegralType(flat.scalar_type(), true);
  for (double value : values) {
    if (std::isnan(value) || (integral && std::abs(value) >= 0x1p53)) return std::nullopt;
  }
  return values;
}

void dropContiguousStrides(InputSpec& spec) {
  int64_t expected = 1;
  for (size_t d = spec.sizes.size(); d-- > 0;) {
    if ((*spec.strides)[d] != expected) return;
    expected *= std::max<int64_t>(spec.sizes[d], 1);
  }
  spec.strides.reset();
}

}  // namespace

Result<InputSpec> specOfTensor(const at::Tensor& tensor, bool readable) {
  if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
    return fail(ErrorKind::Unsupported, "only dense tensors can be described");
  }
  InputSpec spec;
  spec.dtype = tensor.scalar_type();
  spec.sizes = tensor.sizes().vec();
  spec.strides = tensor.strides().vec();
  dropContiguousStrides(spec);
  spec.requires_grad = tensor.requires_grad();
  std::optional<std::vector<double>> values = readable ? exactValues(tensor) : std::nullopt;
  spec.pattern = values ? ValuePattern::Literal : ValuePattern::Data;
  if (values) {
    spec.values = std::move(*values);
  } else {
    spec.data = bytesOf(tensor);
  }
  if (auto checked = checkInputSpec(spec); !checked) return tl::make_unexpected(checked.error());
  return spec;
}

std::optional<InputSpec> specOfValue(const c10::IValue& value) {
  InputSpec spec;
  if (value.isNone()) {
    spec.kind = InputSpec::Kind::None;
  } else if (value.isBool()) {
    spec.kind = InputSpec::Kind::Bool;
    spec.bool_value = value.toBool();
  } else if (value.isInt()) {
    spec.kind = InputSpec::Kind::Int;
    spec.int_value = value.toInt();
  } else if (value.isDouble()) {
    spec.kind = InputSpec::Kind::Double;
    spec.double_value = value.toDouble();
  } else if (value.isString()) {
    spec.kind = InputSpec::Kind::String;
    spec.string_value = value.toStringRef();
  } else if (value.isList() || value.isTuple()) {
    spec.kind = value.isList() ? InputSpec::Kind::List : InputSpec::Kind::Tuple;
    auto elements =
        value.isList() ? value.toListRef() : at::ArrayRef<c10::IValue>(value.toTupleRef().elements());
    for (const c10::IValue& element : elements) {
      auto of = specOfValue(element);
      if (!of) return std::nullopt;
      spec.elements.push_back(std::move(*of));
    }
  } else {
    return std::nullopt;
  }
  return spec;
}

std::optional<InputSpec> specOfType(const c10::Type& type) {
  auto tensor = type.cast<c10::TensorType>();
  if (!tensor || !tensor->scalarType()) return std::nullopt;
  auto sizes = tensor->sizes().concrete_sizes();
  if (!sizes) return std::nullopt;
  InputSpec spec;
  spec.dtype = *tensor->scalarType();
  spec.sizes = *sizes;
  if (auto strides = tensor->strides().concrete_sizes()) {
    spec.strides = *strides;
    dropContiguousStrides(spec);
  }
  if (auto device = tensor->device()) spec.device = device->type();
  spec.requires_grad = tensor->requiresGrad().value_or(false);
  return checkInputSpec(spec) ? std::optional(spec) : std::nullopt;
}

void changeDtype(InputSpec& spec, at::ScalarType dtype) {
  if (spec.pattern == ValuePattern::Data) {
    at::Tensor from = at::empty({static_cast<int64_t>(spec.data.size() / c10::elementSize(spec.dtype))},
                                at::TensorOptions().dtype(spec.dtype));
    FAULTLINE_CHECK(from.nbytes() == spec.data.size(), "data that is no whole number of elements");
    std::memcpy(from.mutable_data_ptr(), spec.data.data(), spec.data.size());
    spec.data = bytesOf(from.to(dtype));
  }
  spec.dtype = dtype;
}

}  // namespace faultline
