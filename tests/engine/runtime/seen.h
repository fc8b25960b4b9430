// What one run looked like from outside, and how two of them are compared.
#pragma once
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace faultline::test {

struct TensorSeen {
  std::string path;
  at::Tensor values;  // undefined: the tensor was
  std::vector<int64_t> strides;
  bool requires_grad = false, is_leaf = true, is_view = false;
  std::string same_as;  // path of the first input or output that is the same object
  std::string shares;   // … that has the same storage
};

struct Seen {
  std::string error;  // "forward: …" or "backward: …"
  std::vector<TensorSeen> outputs;
  std::vector<std::string> scalars;
  std::vector<TensorSeen> gradients;  // of inputs that require grad
  std::vector<std::string> hooks;     // "in0 defined" per call, sorted within a pass
};

struct CompareOptions {
  bool flags =
      true;  // object identity, views, leaves, requires_grad: what the stitched form does not promise
  bool stitched = true;  // compare it at all
  double tolerance = 1e-5;
};

// The line that says what went wrong, without the numbers in it.
inline std::string lastLine(const std::exception& error) {
  const auto* c10_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = c10_error ? c10_error->what_without_backtrace() : error.what();
  const size_t at = text.rfind("RuntimeError: ");
  if (at != std::string::npos) {
    text = text.substr(at + 14);
  }
  text = text.substr(0, text.find_first_of(".\n:"));
  std::string result;
  for (char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c))) {
      result += c;
    }
  }
  return result;
}

inline TensorSeen plainLook(const std::string& path, const at::Tensor& tensor) {
  TensorSeen seen;
  seen.path = path;
  if (tensor.defined()) {
    seen.values = tensor.detach().clone();
  }
  return seen;
}

inline TensorSeen look(const std::vector<std::pair<std::string, at::Tensor>>& all, size_t at) {
  const at::Tensor& tensor = all[at].second;
  TensorSeen seen = plainLook(all[at].first, tensor);
  if (!tensor.defined()) {
    return seen;
  }
  seen.strides = tensor.strides().vec();
  seen.requires_grad = tensor.requires_grad();
  seen.is_leaf = tensor.is_leaf();
  seen.is_view = tensor.is_view();
  for (size_t i = 0; i < at; ++i) {
    if (seen.same_as.empty() && all[i].second.is_same(tensor)) {
      seen.same_as = all[i].first;
    }
    if (seen.shares.empty() && all[i].second.defined() && tensor.numel() > 0 &&
        all[i].second.is_alias_of(tensor)) {
      seen.shares = all[i].first;
    }
  }
  return seen;
}

inline std::string valueDifference(const TensorSeen& a, const TensorSeen& b, double tolerance) {
  if (a.values.defined() != b.values.defined()) {
    return a.path + (b.values.defined() ? " is defined" : " is undefined");
  }
  if (!a.values.defined()) {
    return {};
  }
  if (a.values.scalar_type() != b.values.scalar_type()) {
    return fmt::format("{} has dtype {}, not {}", a.path, c10::toString(b.values.scalar_type()),
                       c10::toString(a.values.scalar_type()));
  }
  if (a.values.sizes() != b.values.sizes()) {
    return fmt::format("{} has sizes {}, not {}", a.path, b.values.sizes().vec(), a.values.sizes().vec());
  }
  const at::ScalarType wide = a.values.is_complex() ? at::kComplexDouble : at::kDouble;
  if (!at::allclose(a.values.to(wide), b.values.to(wide), tolerance, tolerance, /*equal_nan=*/true)) {
    std::ostringstream text;
    text << a.path << " is\n" << b.values << "\nnot\n" << a.values;
    return text.str();
  }
  return {};
}

inline std::string flagDifference(const TensorSeen& a, const TensorSeen& b) {
  std::string found;
  auto compare = [&](const char* what, const auto& expected, const auto& actual) {
    if (expected != actual) {
      found += fmt::format("{} {} is {}, not {}; ", a.path, what, actual, expected);
    }
  };
  compare("requires_grad", a.requires_grad, b.requires_grad);
  compare("is_leaf", a.is_leaf, b.is_leaf);
  compare("is_view", a.is_view, b.is_view);
  compare("same object as", a.same_as, b.same_as);
  compare("storage of", a.shares, b.shares);
  compare("strides", a.strides, b.strides);
  return found;
}

// Empty when equal.
inline std::string difference(const Seen& expected, const Seen& actual, const CompareOptions& options = {}) {
  if (expected.error != actual.error) {
    return fmt::format("error '{}', not '{}'", actual.error, expected.error);
  }
  if (!expected.error.empty()) {
    return {};
  }
  if (expected.outputs.size() != actual.outputs.size() || expected.scalars != actual.scalars) {
    return fmt::format("{} outputs, not {}; scalars {}, not {}", actual.outputs.size(),
                       expected.outputs.size(), actual.scalars, expected.scalars);
  }
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    std::string found = valueDifference(expected.outputs[i], actual.outputs[i], options.tolerance);
    if (found.empty() && options.flags) {
      found = flagDifference(expected.outputs[i], actual.outputs[i]);
    }
    if (!found.empty()) {
      return found;
    }
  }
  if (expected.gradients.size() != actual.gradients.size()) {
    return fmt::format("{} gradients, not {}", actual.gradients.size(), expected.gradients.size());
  }
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    const std::string found = valueDifference(expected.gradients[i], actual.gradients[i], options.tolerance);
    if (!found.empty()) {
      return "gradient of " + found;
    }
  }
  if (expected.hooks != actual.hooks && options.flags) {
    return fmt::format("hooks {}, not {}", actual.hooks, expected.hooks);
  }
  return {};
}

}  // namespace faultline::test
