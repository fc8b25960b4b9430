// From descriptions to values. Every number comes from integers by exact operations or by one rounding of
// IEEE 754: no libm, no torch random generator, no kernel that a CPU flag could change.
#include <cmath>
#include <cstring>

#include <ATen/ATen.h>
#include <ATen/core/List.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "engine/support/check.h"
#include "generators/case/spec_layout.h"
#include "generators/choices/choices.h"

namespace faultline {
namespace {

// Fills what no element covers: a kernel that ignores strides or offset reads it.
constexpr double kGap = 77;

// The numbers of a tensor in logical order, parts of complex numbers in turn.
class ValueStream {
 public:
  ValueStream(const InputSpec& spec, int64_t elements, uint64_t seed)
      : spec_(spec),
        random_(seed),
        integral_(c10::isIntegralType(spec.dtype, /*includeBool=*/true)),
        boolean_(spec.dtype == at::kBool),
        negative_(!integral_ || c10::isSignedType(spec.dtype)),
        complex_(c10::isComplexType(spec.dtype)) {
    if (spec.pattern == ValuePattern::Ties) makeTies(elements * partsOf(spec.dtype));
  }

  double next() {
    size_t at = taken_++;
    bool imaginary = complex_ && at % 2 == 1;
    switch (spec_.pattern) {
      case ValuePattern::Normal:
        if (integral_) return integer(-9, 9);
        return random_.normal();
      case ValuePattern::Positive:
        if (integral_) return integer(1, 9);
        // In integers, since 0.5 + 1.5 * x may be fused or not.
        return static_cast<double>(3 * static_cast<int64_t>(random_.next() >> 14) + (int64_t{1} << 50)) *
               0x1p-51;
      case ValuePattern::Unit:
        if (integral_) return integer(-1, 1);
        return unit();
      case ValuePattern::Zeros:
        return 0;
      case ValuePattern::Ones:
        return imaginary ? 0 : 1;
      case ValuePattern::Ties:
        return ties_[at];
      case ValuePattern::Edges:
        return edge();
      case ValuePattern::Fill:
        return imaginary ? 0 : spec_.fill;
      case ValuePattern::Literal:
        return spec_.values[at];
      case ValuePattern::Data:
        break;
    }
    FAULTLINE_CHECK(false, "data has no stream");
  }

 private:
  double integer(int64_t low, int64_t high) {
    if (boolean_) return static_cast<double>(high > 1 && low > 0 ? 1 : random_.below(2));
    if (!negative_) low = std::max<int64_t>(low, 0);
    return static_cast<double>(low +
                               static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1))));
  }

  // Odd numerators over a power of two that the dtype represents: rounding reaches neither end.
  double unit() {
    size_t part = c10::elementSize(spec_.dtype) / static_cast<size_t>(partsOf(spec_.dtype));
    int bits = part >= 4 ? 24 : part == 2 ? 7 : 2;
    int64_t odd = 2 * static_cast<int64_t>(random_.next() >> (64 - bits)) + 1;
    return std::ldexp(static_cast<double>(odd - (int64_t{1} << bits)), -bits);
  }

  // Up to four values, each as often as the others give or take one, in a shuffled order.
  void makeTies(int64_t count) {
    static constexpr double kFloats[] = {-1.5, -0.5, 0.5, 1.5};
    static constexpr double kIntegers[] = {-1, 0, 1, 2};
    static constexpr double kNaturals[] = {0, 1, 2, 3};
    int64_t distinct = std::clamp<int64_t>(count / 3, 1, boolean_ ? 2 : 4);
    const double* from = !integral_ ? kFloats : negative_ ? kIntegers : kNaturals;
    for (int64_t i = 0; i < count; ++i) ties_.push_back(from[i % distinct]);
    for (size_t i = ties_.size(); i > 1; --i) std::swap(ties_[i - 1], ties_[random_.below(i)]);
  }

  // Zeros of both signs and the places where formulas bend: relu6, hardtanh, hardswish, hardshrink, softplus,
  // round.
  double edge() {
    static constexpr double kFloats[] = {0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -2.5,
                                         2,   -2,   3, -3, 6,   -6,   20,  100};
    static constexpr double kIntegers[] = {0, 1, -1, 2, -2, 3, -3, 6};
    static constexpr double kNaturals[] = {0, 1, 2, 3, 6};
    if (boolean_) return static_cast<double>(random_.below(2));
    if (!integral_) return kFloats[random_.below(std::size(kFloats))];
    return negative_ ? kIntegers[random_.below(std::size(kIntegers))]
                     : kNaturals[random_.below(std::size(kNaturals))];
  }

  const InputSpec& spec_;
  Random random_;
  bool integral_, boolean_, negative_, complex_;
  size_t taken_ = 0;
  std::vector<double> ties_;
};

template <class T>
T convert(double value) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    return static_cast<T>(value);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(value));
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T(static_cast<float>(value));
  }
}

template <class T>
struct Element {
  static T take(ValueStream& stream) { return convert<T>(stream.next()); }
  static T gap() { return convert<T>(kGap); }
};
template <>
struct Element<bool> {
  static bool take(ValueStream& stream) { return stream.next() != 0; }
  static bool gap() { return true; }
};
template <class T>
struct Element<c10::complex<T>> {
  static c10::complex<T> take(ValueStream& stream) {
    T real = convert<T>(stream.next());
    return c10::complex<T>(real, convert<T>(stream.next()));
  }
  static c10::complex<T> gap() { return c10::complex<T>(convert<T>(kGap), convert<T>(kGap)); }
};

template <class T>
void fillStorage(const InputSpec& spec, const SpecLayout& layout, uint64_t seed, void* to) {
  T* storage = static_cast<T*>(to);
  std::fill_n(storage, layout.storage_elements, Element<T>::gap());
  if (spec.pattern == ValuePattern::Data) {
    const char* from = spec.data.data();
    forEachElement(spec.sizes, layout, spec.offset, [&](int64_t at) {
      std::memcpy(&storage[at], from, sizeof(T));
      from += sizeof(T);
    });
    return;
  }
  ValueStream stream(spec, layout.elements, seed);
  forEachElement(spec.sizes, layout, spec.offset,
                 [&](int64_t at) { storage[at] = Element<T>::take(stream); });
}

at::Tensor overStorage(const at::Tensor& storage, const InputSpec& spec, const SpecLayout& layout) {
  // Not as_strided and not set_: the input is no view of anything, and its version is 0.
  at::Tensor tensor = at::empty({0}, storage.options());
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(storage.storage());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(spec.sizes, layout.strides, spec.offset);
  return tensor;
}

// The result of clone() with the leaf's strides, where clone keeps them; else a view of a cloned storage.
at::Tensor makeNonLeaf(const at::Tensor& leaf, const at::Tensor& storage, const SpecLayout& layout) {
  c10::AutoGradMode grad_mode(true);
  at::Tensor clone = leaf.clone();
  if (clone.strides() == leaf.strides() && clone.storage_offset() == leaf.storage_offset()) return clone;
  at::Tensor flat = storage.detach().requires_grad_(true).clone();
  return flat.as_strided(leaf.sizes(), layout.strides, leaf.storage_offset());
}

Result<at::Tensor> makeTensor(const InputSpec& spec, uint64_t seed) {
  auto layout = specLayout(spec);
  FAULTLINE_CHECK(layout.has_value(), "makeInput checks first");
  if (spec.device == c10::DeviceType::CUDA && !at::hasCUDA()) {
    return fail(ErrorKind::Unsupported, "a CUDA input needs a machine with CUDA");
  }
  c10::InferenceMode no_inference(false);
  at::Tensor storage, tensor;
  {
    c10::AutoGradMode grad_mode(false);
    storage = at::empty({layout->storage_elements}, at::TensorOptions().dtype(spec.dtype).device(at::kCPU));
    switch (spec.dtype) {
#define FAULTLINE_DTYPE(scalar, cpp, torch_name, other)                \
  case at::ScalarType::scalar:                                         \
    fillStorage<cpp>(spec, *layout, seed, storage.mutable_data_ptr()); \
    break;
#include "generators/case/dtypes.def"
#undef FAULTLINE_DTYPE
      default:
        FAULTLINE_CHECK(false, "makeInput checks first");
    }
    if (spec.device != c10::DeviceType::CPU) storage = storage.to(at::Device(spec.device));
    tensor = overStorage(storage, spec, *layout);
  }
  if (!spec.requires_grad) return tensor;
  tensor.requires_grad_(true);
  return spec.leaf ? tensor : makeNonLeaf(tensor, storage, *layout);
}

c10::TypePtr elementType(const c10::TypePtr& type, size_t index) {
  if (type == nullptr) return nullptr;
  if (auto list = type->cast<c10::ListType>()) return list->getElementType();
  if (auto optional = type->cast<c10::OptionalType>()) return elementType(optional->getElementType(), index);
  if (auto tuple = type->cast<c10::TupleType>(); tuple && index < tuple->elements().size())
    return tuple->elements()[index];
  return nullptr;
}

Result<c10::IValue> make(const InputSpec& spec, uint64_t seed, const std::vector<c10::IValue>& earlier,
                         const c10::TypePtr& type) {
  switch (spec.kind) {
    case InputSpec::Kind::Tensor: {
      auto tensor = makeTensor(spec, spec.seed.value_or(seed));
      if (!tensor) return tl::make_unexpected(tensor.error());
      return c10::IValue(std::move(*tensor));
    }
    case InputSpec::Kind::Int:
      return c10::IValue(spec.int_value);
    case InputSpec::Kind::Double:
      return c10::IValue(spec.double_value);
    case InputSpec::Kind::Bool:
      return c10::IValue(spec.bool_value);
    case InputSpec::Kind::String:
      return c10::IValue(spec.string_value);
    case InputSpec::Kind::None:
      return c10::IValue();
    case InputSpec::Kind::SameAs:
      if (spec.same_as >= earlier.size()) {
        return fail(ErrorKind::Invalid, fmt::format("@{} is not an earlier input", spec.same_as));
      }
      return earlier[spec.same_as];
    case InputSpec::Kind::List:
    case InputSpec::Kind::Tuple:
      break;
  }
  std::vector<c10::IValue> elements;
  for (size_t i = 0; i < spec.elements.size(); ++i) {
    auto element = make(spec.elements[i], mixSeed(seed, i), earlier, elementType(type, i));
    if (!element) return element;
    elements.push_back(std::move(*element));
  }
  if (spec.kind == InputSpec::Kind::Tuple)
    return c10::IValue(c10::ivalue::Tuple::create(std::move(elements)));
  c10::TypePtr of = elementType(type, 0);
  if (of == nullptr) of = inputType(spec)->expectRef<c10::ListType>().getElementType();
  c10::impl::GenericList list(of);
  for (c10::IValue& element : elements) list.push_back(std::move(element));
  return c10::IValue(std::move(list));
}

}  // namespace

Result<c10::IValue> makeInput(const InputSpec& spec, uint64_t seed, const std::vector<c10::IValue>& earlier,
                              const c10::TypePtr& type) {
  if (auto checked = checkInputSpec(spec); !checked) return tl::make_unexpected(checked.error());
  return make(spec, mixSeed(seed, earlier.size()), earlier, type);
}

}  // namespace faultline
