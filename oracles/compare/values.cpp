#include "oracles/compare/values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>

namespace faultline {
namespace {

std::string place(const at::Tensor& t, int64_t flat) {
  std::string text;
  std::vector<std::string> parts;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    parts.push_back(std::to_string(flat % t.size(d)));
    flat /= t.size(d);
  }
  for (auto it = parts.rbegin(); it != parts.rend(); ++it) text += (text.empty() ? "" : ", ") + *it;
  return "[" + text + "]";
}

enum class Class { Finite, NotANumber, Infinity, MinusInfinity };

Class classOf(double v) {
  if (std::isnan(v)) return Class::NotANumber;
  if (std::isinf(v)) return v > 0 ? Class::Infinity : Class::MinusInfinity;
  return Class::Finite;
}

template <class T>
ValueComparison compareFloating(const at::Tensor& expected, const at::Tensor& got,
                                const Tolerance& tolerance) {
  ValueComparison result;
  const T* a = expected.const_data_ptr<T>();
  const T* b = got.const_data_ptr<T>();
  constexpr int digits = std::numeric_limits<T>::max_digits10;
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const double want = static_cast<double>(a[i]);
    const double have = static_cast<double>(b[i]);
    const Class want_class = classOf(want);
    if (want_class == Class::Finite) ++result.counted;
    const bool other_class = want_class != classOf(have);
    const bool far = !other_class && want_class == Class::Finite &&
                     std::abs(want - have) > tolerance.absolute + tolerance.relative * std::abs(want);
    if (other_class) {
      result.distance = std::numeric_limits<double>::infinity();
    } else if (want_class == Class::Finite && want != have) {
      // Small numbers count as the one at which both tolerances are equal.
      const double size = tolerance.absolute / tolerance.relative + std::abs(want);
      result.distance = std::max(result.distance, std::abs(want - have) / size);
    }
    if (!other_class && !far) continue;
    // The first of its kind speaks; another class of number outweighs a distance.
    if (result.equal || (other_class && !result.other_class)) {
      result.message =
          fmt::format("{0}: expected {1:.{3}g}, got {2:.{3}g}", place(expected, i), want, have, digits);
    }
    result.equal = false;
    result.other_class = result.other_class || other_class;
  }
  return result;
}

template <class T>
ValueComparison compareExact(const at::Tensor& expected, const at::Tensor& got) {
  ValueComparison result;
  const T* a = expected.const_data_ptr<T>();
  const T* b = got.const_data_ptr<T>();
  result.counted = static_cast<uint64_t>(expected.numel());
  for (int64_t i = 0; i < expected.numel(); ++i) {
    if (a[i] == b[i]) continue;
    result.equal = false;
    result.distance = std::numeric_limits<double>::infinity();
    result.message = fmt::format("{}: expected {}, got {}", place(expected, i), a[i], b[i]);
    break;
  }
  return result;
}

}  // namespace

ValueComparison compareValues(const at::Tensor& expected, const at::Tensor& got, const Tolerance& tolerance) {
  const at::AutoDispatchBelowADInplaceOrView below;
  if (expected.is_complex()) {
    return compareValues(at::view_as_real(expected), at::view_as_real(got), tolerance);
  }
  switch (expected.scalar_type()) {
    case at::kFloat:
      return compareFloating<float>(expected, got, tolerance);
    case at::kDouble:
      return compareFloating<double>(expected, got, tolerance);
    case at::kLong:
      return compareExact<int64_t>(expected, got);
    case at::kBool:
      return compareExact<bool>(expected, got);
    default:
      break;
  }
  if (expected.is_floating_point()) {
    return compareFloating<double>(expected.to(at::kDouble), got.to(at::kDouble), tolerance);
  }
  return compareExact<int64_t>(expected.to(at::kLong), got.to(at::kLong));
}

}  // namespace faultline
