// What the rules for nodes are made of. All give what is wrong, or nothing.
#pragma once
#include <fmt/format.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <optional>
#include <string>

namespace faultline {

// Numbers of inputs, outputs (nullopt: any) and blocks.
std::string counts(const torch::jit::Node& node, std::optional<size_t> inputs, std::optional<size_t> outputs,
                   size_t blocks);

// A value of type `actual`, called `what`, where `formal` is written.
std::string arrives(const std::string& what, const c10::TypePtr& actual, const c10::TypePtr& formal);

std::string inputIs(const torch::jit::Node& node, size_t i, const c10::TypePtr& type);

std::string hasAttribute(const torch::jit::Node& node, c10::Symbol name, torch::jit::AttributeKind kind,
                         const char* what);

// The first of several checks that finds something; later ones may rely on the earlier.
std::string first(std::initializer_list<std::function<std::string()>> checks);

// The same check for 0 … count - 1.
template <class Check>
std::string firstOf(size_t count, Check check) {
  for (size_t i = 0; i < count; ++i) {
    std::string problem = check(i);
    if (!problem.empty()) {
      return problem;
    }
  }
  return "";
}

}  // namespace faultline
