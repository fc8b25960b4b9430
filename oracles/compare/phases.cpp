#include "oracles/compare/phases.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "oracles/compare/rules.h"
#include "oracles/compare/values.h"

namespace faultline {
namespace {

// Gravest first.
constexpr FailureKind kGravity[] = {
    FailureKind::invalid_graph, FailureKind::unsound_profile,
    FailureKind::throws,        FailureKind::not_throws,
    FailureKind::wrong_error,   FailureKind::shape,
    FailureKind::dtype,         FailureKind::value,
    FailureKind::mutation,      FailureKind::undefined_grad,
    FailureKind::grad,          FailureKind::hook_count,
    FailureKind::hook_arg,      FailureKind::hook_order,
    FailureKind::requires_grad, FailureKind::leaf,
    FailureKind::alias,         FailureKind::stride,
};

size_t gravity(FailureKind kind) {
  return static_cast<size_t>(std::find(std::begin(kGravity), std::end(kGravity), kind) -
                             std::begin(kGravity));
}

std::string dtypeName(at::ScalarType dtype) { return c10::toString(dtype); }

// The same text, or two numbers closer than the tolerance of float32: a scalar may be a tensor's item.
bool sameScalar(const std::string& a, const std::string& b, const Comparison& comparison) {
  if (a == b) return true;
  char* end_a = nullptr;
  char* end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a);
  const double y = std::strtod(b.c_str(), &end_b);
  const bool numbers =
      end_a == a.c_str() + a.size() && end_b == b.c_str() + b.size() && !a.empty() && !b.empty();
  // Integers are exact; doubles are written with a point, an exponent, or as inf and nan.
  const bool integral = a.find_first_not_of("-0123456789") == std::string::npos;
  if (!numbers || integral) return false;
  if (std::isnan(x) && std::isnan(y)) return true;
  const Tolerance tolerance = toleranceFor(at::kFloat, comparison.profile(), false);
  return std::abs(x - y) <= tolerance.absolute + tolerance.relative * std::abs(x);
}

void compareFlags(const TensorTrace& expected, const TensorTrace& got, Comparison& comparison) {
  comparison.count(2);
  if (expected.requires_grad != got.requires_grad) {
    comparison.differ(FailureKind::requires_grad, "",
                      fmt::format("{} requires_grad: expected {}, got {}", expected.path,
                                  expected.requires_grad, got.requires_grad));
  } else if (expected.is_leaf != got.is_leaf) {
    comparison.differ(
        FailureKind::leaf, "",
        fmt::format("{} is_leaf: expected {}, got {}", expected.path, expected.is_leaf, got.is_leaf));
  }
}

void compareStrides(const TensorTrace& expected, const TensorTrace& got, Comparison& comparison) {
  if (!expected.defined || !got.defined || expected.sizes != got.sizes) return;
  comparison.count();
  if (!sameStrides(expected.sizes, expected.strides, got.strides)) {
    comparison.differ(FailureKind::stride, "",
                      fmt::format("{} strides: expected [{}], got [{}]", expected.path,
                                  fmt::join(expected.strides, ", "), fmt::join(got.strides, ", ")));
  }
}

void compareAliases(const PhaseTrace& expected, const PhaseTrace& got, Comparison& comparison) {
  auto compare = [&](const TensorTrace& a, const TensorTrace& b) {
    comparison.count();
    if (a.alias_class != b.alias_class) {
      comparison.differ(FailureKind::alias, "", a.path + " shares storage with other tensors than expected");
    }
  };
  for (size_t i = 0; i < expected.inputs.size(); ++i) compare(expected.inputs[i], got.inputs[i]);
  for (size_t i = 0; i < expected.outputs.size(); ++i) compare(expected.outputs[i], got.outputs[i]);
}

}  // namespace

void Comparison::differ(FailureKind kind, std::string detail, const std::string& message, double distance) {
  apart(distance);
  if (worst_ && gravity(worst_->kind) <= gravity(kind)) return;
  worst_ = {kind, std::move(detail), where_.empty() ? message : where_ + ": " + message};
}

Verdict Comparison::verdict(const std::string& nothing) const {
  if (worst_) return Verdict::failure(worst_->kind, worst_->detail, worst_->message, count_, distance_);
  return count_ > 0 ? Verdict::pass(count_, 0, distance_) : Verdict::skip(nothing);
}

bool compareOutcome(const PhaseTrace& expected, const PhaseTrace& got, Comparison& comparison) {
  if (!expected.error && !got.error) return true;
  comparison.count();
  if (!expected.error) {
    comparison.differ(FailureKind::throws, got.error->detail, "threw " + got.error->text);
  } else if (!got.error) {
    comparison.differ(FailureKind::not_throws, expected.error->detail,
                      "did not throw, expected " + expected.error->text);
  } else if (!sameError(*expected.error, *got.error)) {
    comparison.differ(FailureKind::wrong_error, got.error->detail,
                      fmt::format("expected {}: {}, got {}: {}", expected.error->type, expected.error->text,
                                  got.error->type, got.error->text));
  }
  return false;
}

void compareTensor(const TensorTrace& expected, const TensorTrace& got, bool gradient, FailureKind values,
                   Comparison& comparison) {
  comparison.count();
  if (expected.defined != got.defined) {
    comparison.differ(gradient ? FailureKind::undefined_grad : FailureKind::shape, "",
                      fmt::format("{}: expected {}, got {}", expected.path,
                                  expected.defined ? "a tensor" : "an undefined tensor",
                                  got.defined ? "a tensor" : "an undefined tensor"));
    return;
  }
  if (!expected.defined) return;
  comparison.count(2);
  if (expected.sizes != got.sizes) {
    comparison.differ(FailureKind::shape, "",
                      fmt::format("{} sizes: expected [{}], got [{}]", expected.path,
                                  fmt::join(expected.sizes, ", "), fmt::join(got.sizes, ", ")));
    return;
  }
  if (expected.dtype != got.dtype) {
    comparison.differ(FailureKind::dtype, "",
                      fmt::format("{} dtype: expected {}, got {}", expected.path, dtypeName(expected.dtype),
                                  dtypeName(got.dtype)));
    return;
  }
  const Tolerance tolerance = toleranceFor(expected.dtype, comparison.profile(), gradient);
  const ValueComparison result = compareValues(expected.values, got.values, tolerance);
  comparison.count(result.counted);
  comparison.apart(result.distance);
  if (!result.equal) {
    comparison.differ(values, result.other_class ? kNonFinite : "", expected.path + result.message,
                      result.distance);
  }
}

void compareForward(const PhaseTrace& expected, const PhaseTrace& got, Aliases aliases,
                    Comparison& comparison) {
  comparison.count();
  if (expected.outputs.size() != got.outputs.size() || expected.scalars.size() != got.scalars.size() ||
      expected.inputs.size() != got.inputs.size()) {
    comparison.differ(
        FailureKind::shape, "",
        fmt::format("expected {} tensors and {} scalars, got {} and {}", expected.outputs.size(),
                    expected.scalars.size(), got.outputs.size(), got.scalars.size()));
    return;
  }
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    compareTensor(expected.outputs[i], got.outputs[i], false, FailureKind::value, comparison);
    compareFlags(expected.outputs[i], got.outputs[i], comparison);
    compareStrides(expected.outputs[i], got.outputs[i], comparison);
  }
  for (size_t i = 0; i < expected.scalars.size(); ++i) {
    comparison.count();
    if (!sameScalar(expected.scalars[i].text, got.scalars[i].text, comparison)) {
      comparison.differ(FailureKind::value, "",
                        fmt::format("{}: expected {}, got {}", expected.scalars[i].path,
                                    expected.scalars[i].text, got.scalars[i].text));
    }
  }
  for (size_t i = 0; i < expected.inputs.size(); ++i) {
    // Written more or less often: a write is missing or too many. As often, but otherwise: wrong numbers.
    const bool same_writes = expected.inputs[i].version == got.inputs[i].version;
    compareTensor(expected.inputs[i], got.inputs[i], false,
                  same_writes ? FailureKind::value : FailureKind::mutation, comparison);
    compareFlags(expected.inputs[i], got.inputs[i], comparison);
  }
  if (aliases == Aliases::Compare) compareAliases(expected, got, comparison);
}

void compareBackward(const PhaseTrace& expected, const PhaseTrace& got, Comparison& comparison) {
  comparison.count();
  if (expected.gradients.size() != got.gradients.size()) {
    comparison.differ(
        FailureKind::shape, "",
        fmt::format("expected {} gradients, got {}", expected.gradients.size(), got.gradients.size()));
    return;
  }
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    compareTensor(expected.gradients[i], got.gradients[i], true, FailureKind::grad, comparison);
  }
}

void compareRun(const RunTrace& expected, const RunTrace& got, size_t run, size_t first, size_t last,
                Aliases aliases, Comparison& comparison) {
  for (size_t p = first; p < std::min(last, expected.phases.size()); ++p) {
    comparison.at(fmt::format("run {}, {}", run + 1, expected.phases[p].name()));
    if (p >= got.phases.size()) {
      comparison.count();
      comparison.differ(FailureKind::shape, "", "the lane has no such phase");
      return;
    }
    if (!compareOutcome(expected.phases[p], got.phases[p], comparison)) {
      // Without a forward there is nothing to differentiate; a backward that throws leaves the others as they
      // are.
      if (p == 0 || comparison.failed()) return;
      continue;
    }
    if (expected.phases[p].kind == PhaseTrace::Kind::Forward) {
      compareForward(expected.phases[p], got.phases[p], aliases, comparison);
    } else {
      compareBackward(expected.phases[p], got.phases[p], comparison);
    }
    if (comparison.failed()) return;
  }
}

bool hasRoots(const PhaseTrace& forward) {
  return std::any_of(forward.outputs.begin(), forward.outputs.end(), [](const TensorTrace& t) {
    return t.defined && t.requires_grad && (c10::isFloatingType(t.dtype) || c10::isComplexType(t.dtype));
  });
}

bool sameRoots(const PhaseTrace& a, const PhaseTrace& b) {
  return std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    [](const TensorTrace& x, const TensorTrace& y) {
                      return x.defined == y.defined && x.requires_grad == y.requires_grad &&
                             x.sizes == y.sizes && x.dtype == y.dtype;
                    });
}

}  // namespace faultline
