#include <cmath>

#include <fmt/format.h>

#include "generators/case/spec_layout.h"
#include "generators/text/scanner.h"

namespace faultline {
namespace {

constexpr size_t kMaxRank = 64;  // TensorIterator's own limit
constexpr int64_t kMaxBytes = int64_t{1} << 30;

tl::unexpected<Error> invalidSpec(std::string message) {
  return fail(ErrorKind::Invalid, std::move(message));
}

bool knownDtype(at::ScalarType dtype) {
  switch (dtype) {
#define FAULTLINE_DTYPE(scalar, cpp, torch_name, other) case at::ScalarType::scalar:
#include "generators/case/dtypes.def"
#undef FAULTLINE_DTYPE
    return true;
    default:
      return false;
  }
}

template <class T>
bool holds(double value) {
  if constexpr (std::is_integral_v<T>) {
    // 2^63 and 2^64 are doubles, the largest int64 and uint64 are not: compare with the power of two behind
    // the range.
    constexpr int kBits = std::is_same_v<T, bool> ? 1 : std::numeric_limits<T>::digits;
    double end = std::ldexp(1.0, kBits);
    return value == std::trunc(value) && value < end && value >= (std::is_signed_v<T> ? -end : 0.0);
  } else {
    return true;  // rounds
  }
}

bool dtypeHolds(at::ScalarType dtype, double value) {
  switch (dtype) {
#define FAULTLINE_DTYPE(scalar, cpp, torch_name, other) \
  case at::ScalarType::scalar:                          \
    return holds<cpp>(value);
#include "generators/case/dtypes.def"
#undef FAULTLINE_DTYPE
    default:
      return false;
  }
}

// Elements that share memory (stride 0) must be given the same value.
bool sharedElementsAgree(const InputSpec& spec, const SpecLayout& layout) {
  std::unordered_map<int64_t, size_t> first;
  auto parts = static_cast<size_t>(partsOf(spec.dtype));
  size_t itemsize = c10::elementSize(spec.dtype);
  bool agree = true;
  size_t index = 0;
  forEachElement(spec.sizes, layout, spec.offset, [&](int64_t at) {
    size_t before = first.try_emplace(at, index).first->second;
    if (spec.pattern == ValuePattern::Data) {
      agree =
          agree && spec.data.compare(before * itemsize, itemsize, spec.data, index * itemsize, itemsize) == 0;
    } else {
      for (size_t k = 0; k < parts; ++k) {
        agree = agree && spec.values[before * parts + k] == spec.values[index * parts + k];
      }
    }
    ++index;
  });
  return agree;
}

Result<void> checkValues(const InputSpec& spec, const SpecLayout& layout) {
  auto notHeld = [&](double value) {
    return invalidSpec(
        fmt::format("{} cannot hold the value {}", writeDtype(spec.dtype), writeDouble(value)));
  };
  if (spec.pattern == ValuePattern::Fill && !dtypeHolds(spec.dtype, spec.fill)) return notHeld(spec.fill);
  if (spec.pattern == ValuePattern::Literal) {
    auto wanted = static_cast<size_t>(layout.elements * partsOf(spec.dtype));
    if (spec.values.size() != wanted) {
      return invalidSpec(fmt::format("expected {} values{}, got {}", wanted,
                                     partsOf(spec.dtype) == 2 ? " (real and imaginary parts in turn)" : "",
                                     spec.values.size()));
    }
    for (double value : spec.values) {
      if (!dtypeHolds(spec.dtype, value)) return notHeld(value);
    }
  }
  if (spec.pattern == ValuePattern::Data) {
    auto wanted = static_cast<size_t>(layout.elements) * c10::elementSize(spec.dtype);
    if (spec.data.size() != wanted) {
      return invalidSpec(fmt::format("expected {} bytes of data, got {}", wanted, spec.data.size()));
    }
    if (spec.dtype == at::kBool && spec.data.find_first_not_of(std::string("\0\1", 2)) != std::string::npos) {
      return invalidSpec("bytes of bool data are 0 or 1");
    }
  }
  bool given = spec.pattern == ValuePattern::Literal || spec.pattern == ValuePattern::Data;
  if (given && spec.strides && !sharedElementsAgree(spec, layout)) {
    return invalidSpec("elements that share memory are given different values");
  }
  return {};
}

Result<void> checkTensor(const InputSpec& spec) {
  if (!knownDtype(spec.dtype))
    return invalidSpec(fmt::format("inputs cannot have dtype {}", c10::toString(spec.dtype)));
  auto layout = specLayout(spec);
  if (!layout) return tl::make_unexpected(layout.error());
  if (spec.device != c10::DeviceType::CPU && spec.device != c10::DeviceType::CUDA) {
    return invalidSpec(
        fmt::format("inputs live on cpu or cuda, not on {}", c10::DeviceTypeName(spec.device, true)));
  }
  bool differentiable = c10::isFloatingType(spec.dtype) || c10::isComplexType(spec.dtype);
  if (spec.requires_grad && !differentiable) {
    return invalidSpec(fmt::format("only floating and complex tensors have gradients, {} is neither",
                                   writeDtype(spec.dtype)));
  }
  if (!spec.leaf && !spec.requires_grad)
    return invalidSpec("a tensor without grad is always a leaf: nonleaf needs grad");
  return checkValues(spec, *layout);
}

}  // namespace

Result<SpecLayout> specLayout(const InputSpec& spec) {
  auto itemsize = static_cast<int64_t>(c10::elementSize(spec.dtype));
  int64_t limit = kMaxBytes / itemsize;
  auto tooLarge = [&] { return invalidSpec(fmt::format("inputs have at most {} MiB", kMaxBytes >> 20)); };
  if (spec.sizes.size() > kMaxRank)
    return invalidSpec(fmt::format("tensors have at most {} dimensions", kMaxRank));
  SpecLayout layout;
  layout.elements = 1;
  layout.strides.resize(spec.sizes.size());
  int64_t contiguous = 1;
  for (size_t d = spec.sizes.size(); d-- > 0;) {
    int64_t size = spec.sizes[d];
    if (size < 0) return invalidSpec(fmt::format("sizes are not negative, got {}", size));
    layout.strides[d] = contiguous;
    layout.elements *= size;
    // Sizes of 0 do not hide how long the strides of the other dimensions get.
    if (size > limit || contiguous * std::max<int64_t>(size, 1) > limit) return tooLarge();
    contiguous *= std::max<int64_t>(size, 1);
  }
  if (spec.strides) {
    if (spec.strides->size() != spec.sizes.size()) {
      return invalidSpec(
          fmt::format("expected {} strides, one per size, got {}", spec.sizes.size(), spec.strides->size()));
    }
    layout.strides = *spec.strides;
  }
  if (spec.offset < 0) return invalidSpec(fmt::format("offsets are not negative, got {}", spec.offset));
  if (spec.offset > limit) return tooLarge();
  layout.storage_elements = spec.offset + (layout.elements == 0 ? 0 : 1);
  for (size_t d = 0; d < spec.sizes.size(); ++d) {
    int64_t stride = layout.strides[d];
    if (stride < 0) return invalidSpec(fmt::format("strides are not negative, got {}", stride));
    if (stride > limit) return tooLarge();
    if (layout.elements == 0) continue;
    layout.storage_elements += (spec.sizes[d] - 1) * stride;
    if (layout.storage_elements > limit) return tooLarge();
  }
  return layout;
}

Result<void> checkInputSpec(const InputSpec& spec) {
  if (spec.kind == InputSpec::Kind::Tensor) return checkTensor(spec);
  for (const InputSpec& element : spec.elements) {
    if (auto checked = checkInputSpec(element); !checked) return checked;
  }
  return {};
}

}  // namespace faultline
