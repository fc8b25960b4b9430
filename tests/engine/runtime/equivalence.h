// Runs a graph in several ways and says in what the runs differ: values, gradients, flags, aliases, hook
// counts, errors.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/stack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "faultline/graph_break.h"
#include "faultline/ir.h"
#include "tests/engine/runtime/seen.h"

namespace faultline::test {

using Runner = std::function<void(torch::jit::Stack&)>;
using Inputs = std::function<torch::jit::Stack()>;  // fresh equal inputs on every call

inline std::shared_ptr<Graph> parse(std::string_view ir) {
  auto graph = readGraph(ir);
  EXPECT_TRUE(graph) << graph.error().str();
  return graph ? *graph : std::make_shared<Graph>();
}

// The interpreter and eager autograd; of a stitched graph, the interpreter and stock pieces.
inline Runner interpreter(const std::shared_ptr<Graph>& graph) {
  auto code = std::make_shared<torch::jit::Code>(graph, "f");
  return [code](torch::jit::Stack& stack) { torch::jit::InterpreterState(*code).run(stack); };
}

inline Runner lean(const CompiledGraph& compiled) {
  return [compiled](torch::jit::Stack& stack) { compiled.run(stack); };
}

// Values in (-2, 2), no two equal, none 0.
inline at::Tensor values(std::vector<int64_t> sizes, int64_t seed = 1, at::ScalarType dtype = at::kFloat) {
  at::Tensor result = at::empty(sizes, at::kDouble);
  auto* data = result.data_ptr<double>();
  for (int64_t i = 0; i < result.numel(); ++i) {
    data[i] =
        1.9 * std::sin(0.37 + 12.9898 * static_cast<double>(i + 1) + 78.233 * static_cast<double>(seed));
  }
  return result.to(dtype);
}

inline at::Tensor leaf(std::vector<int64_t> sizes, int64_t seed = 1, at::ScalarType dtype = at::kFloat) {
  return values(std::move(sizes), seed, dtype).set_requires_grad(true);
}

struct Backward {
  enum class Kind { None, All, Output, Double, Twice, Retain, AfterWrite, WriteOutput, Infinite };
  Kind kind = Kind::All;
  // Output: which. AfterWrite: the input that is written to between forward and backward. WriteOutput: the
  // output. Infinite: a gradient of infinities comes in.
  size_t index = 0;
  std::string str() const {
    static constexpr const char* words[] = {"none",    "all",    "output",         "double",
                                            "twice",   "retain", "after write to", "after write to output",
                                            "infinite"};
    return fmt::format("{} {}", words[static_cast<size_t>(kind)], index);
  }
};

namespace detail {

inline void tensorsOf(const std::string& path, const c10::IValue& value,
                      std::vector<std::pair<std::string, at::Tensor>>& found,
                      std::vector<std::string>& scalars) {
  if (value.isTensor()) {
    found.emplace_back(path, value.toTensor());
  } else if (value.isList()) {
    for (size_t i = 0; i < value.toListRef().size(); ++i) {
      tensorsOf(fmt::format("{}[{}]", path, i), value.toListRef()[i], found, scalars);
    }
  } else if (value.isTuple()) {
    for (size_t i = 0; i < value.toTupleRef().elements().size(); ++i) {
      tensorsOf(fmt::format("{}[{}]", path, i), value.toTupleRef().elements()[i], found, scalars);
    }
  } else {
    std::ostringstream text;
    text << value;
    scalars.push_back(path + " " + text.str());
  }
}

inline at::Tensor weightsOf(const at::Tensor& output, int64_t seed) {
  return values(output.sizes().vec(), 100 + seed, at::kDouble).to(output.scalar_type());
}

}  // namespace detail

inline Seen observe(const Runner& run, const Inputs& make_inputs, const Backward& backward,
                    bool grad_mode = true) {
  Seen seen;
  torch::jit::Stack stack = make_inputs();
  std::vector<std::pair<std::string, at::Tensor>> all;
  std::vector<std::string> unused;
  for (size_t i = 0; i < stack.size(); ++i) {
    detail::tensorsOf(fmt::format("in{}", i), stack[i], all, unused);
  }
  std::vector<at::Tensor> leaves;
  std::vector<std::string> names;
  auto log = std::make_shared<std::vector<std::string>>();
  for (const auto& [path, tensor] : all) {
    if (tensor.defined() && tensor.requires_grad()) {
      leaves.push_back(tensor);
      names.push_back(path);
      tensor.register_hook([log, name = path](const at::Tensor& grad) {
        log->push_back(name + (grad.defined() ? " defined" : " undefined"));
      });
    }
  }
  const size_t inputs = all.size();
  at::Tensor kept_input =
      backward.kind == Backward::Kind::AfterWrite ? all.at(backward.index).second : at::Tensor();
  std::vector<at::Tensor> outputs;
  try {
    at::AutoGradMode mode(grad_mode);
    run(stack);
  } catch (const std::exception& error) {
    seen.error = "forward: " + lastLine(error);
    return seen;
  }
  for (size_t i = 0; i < stack.size(); ++i) {
    detail::tensorsOf(fmt::format("out{}", i), stack[i], all, seen.scalars);
  }
  for (size_t i = inputs; i < all.size(); ++i) {
    seen.outputs.push_back(look(all, i));
    outputs.push_back(all[i].second);
  }
  if (backward.kind == Backward::Kind::None) {
    return seen;
  }
  if (backward.kind == Backward::Kind::WriteOutput) {
    try {
      at::AutoGradMode mode(grad_mode);
      outputs.at(backward.index).mul_(2);
    } catch (const std::exception& error) {
      seen.error = "write: " + lastLine(error);
      return seen;
    }
    // Another output, a view that was made without grad mode, may now refuse to be read at all.
    try {
      for (const at::Tensor& output : outputs) {
        (void)output.grad_fn();
      }
    } catch (const std::exception& error) {
      seen.error = "read: " + lastLine(error);
      return seen;
    }
    for (size_t i = inputs; i < all.size(); ++i) {
      seen.outputs[i - inputs] = look(all, i);
    }
  }
  std::vector<at::Tensor> losses, weights;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool chosen = backward.kind != Backward::Kind::Output || backward.index == i;
    if (chosen && outputs[i].defined() && outputs[i].requires_grad()) {
      at::Tensor weight = detail::weightsOf(outputs[i], static_cast<int64_t>(i));
      if (backward.kind == Backward::Kind::Infinite) {
        weight = weight / 0.;
      } else if (backward.kind == Backward::Kind::Double) {
        weights.push_back(weight.set_requires_grad(true));
      }
      losses.push_back((outputs[i] * weight).sum());
    }
  }
  stack.clear();
  if (losses.empty()) {
    return seen;
  }
  at::Tensor loss = losses[0];
  for (size_t i = 1; i < losses.size(); ++i) {
    loss = loss + losses[i];
  }
  try {
    if (backward.kind == Backward::Kind::AfterWrite) {
      at::NoGradGuard no_grad;
      kept_input.zero_();
    }
    if (backward.kind == Backward::Kind::Double) {
      auto first = torch::autograd::grad({loss}, leaves, {}, true, true, true);
      std::vector<at::Tensor> second;
      for (size_t i = 0; i < first.size(); ++i) {
        seen.gradients.push_back(plainLook("first " + names[i], first[i]));
        if (first[i].defined() && first[i].requires_grad()) {
          second.push_back((first[i] * detail::weightsOf(first[i], 50 + static_cast<int64_t>(i))).sum());
        }
      }
      log->push_back("second");
      if (!second.empty()) {
        at::Tensor total = second[0];
        for (size_t i = 1; i < second.size(); ++i) {
          total = total + second[i];
        }
        total.backward();
      }
      // What a second backward sends on to the gradient that came in.
      for (size_t i = 0; i < weights.size(); ++i) {
        seen.gradients.push_back(plainLook(fmt::format("weight{}", i), weights[i].grad()));
      }
    } else {
      loss.backward({}, backward.kind == Backward::Kind::Retain);
      if (backward.kind == Backward::Kind::Twice || backward.kind == Backward::Kind::Retain) {
        loss.backward();
      }
    }
  } catch (const std::exception& error) {
    seen.error = "backward: " + lastLine(error);
    return seen;  // which gradients were there by then depends on the order inside a piece
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    seen.gradients.push_back(plainLook(names[i], leaves[i].is_leaf() ? leaves[i].grad() : at::Tensor()));
  }
  auto start = log->begin();
  for (auto it = log->begin(); it != log->end(); ++it) {
    if (*it == "second") {
      std::sort(start, it);
      start = it + 1;
    }
  }
  std::sort(start, log->end());
  seen.hooks = *log;
  return seen;
}

// A stock piece takes for granted what the types of its inputs said.
inline std::shared_ptr<Graph> withRequiresGrad(Graph& graph, const torch::jit::Stack& inputs) {
  auto copy = graph.copy();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isTensor() && copy->inputs()[i]->type()->kind() == c10::TypeKind::TensorType) {
      copy->inputs()[i]->setType(
          c10::TensorType::get()->withRequiresGrad(inputs[i].toTensor().requires_grad()));
    }
  }
  return copy;
}

inline std::vector<Backward> allBackwards(const Seen& forward, const torch::jit::Stack& inputs) {
  using Kind = Backward::Kind;
  std::vector<Backward> result = {
      {Kind::None, 0}, {Kind::All, 0}, {Kind::Double, 0}, {Kind::Twice, 0}, {Kind::Retain, 0}};
  for (size_t i = 0; forward.outputs.size() > 1 && i < forward.outputs.size(); ++i) {
    result.push_back({Kind::Output, i});
  }
  for (size_t i = 0; i < forward.outputs.size(); ++i) {
    if (forward.outputs[i].values.defined()) {
      result.push_back({Kind::WriteOutput, i});
    }
  }
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  std::vector<std::string> unused;
  for (const auto& input : inputs) {
    detail::tensorsOf("in", input, tensors, unused);
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    result.push_back({Kind::AfterWrite, i});
  }
  return result;
}

// The lean form against eager for each policy and backward, with and without grad mode, three times each; the
// stitched form where it promises the same. Returns the differences, one a line.
inline std::string compareAll(const std::shared_ptr<Graph>& graph, const Inputs& inputs,
                              const std::vector<BreakPolicy>& policies, const CompareOptions& options = {}) {
  std::string report;
  const Runner reference = interpreter(graph);
  const Seen forward = observe(reference, inputs, {Backward::Kind::None, 0});
  for (const BreakPolicy& policy : policies) {
    auto plan = planBreaks(*graph, policy);
    if (!plan) {
      return report + plan.error().str() + "\n";
    }
    auto compiled = compile(graph, *plan);
    if (!compiled) {
      return report + compiled.error().str() + "\n";
    }
    const Runner broken = lean(*compiled);
    auto typed = compile(withRequiresGrad(*graph, inputs()), *plan);
    const Runner outer = interpreter(typed->stitchedGraph()->copy());
    for (const Backward& backward : allBackwards(forward, inputs())) {
      for (bool grad_mode : {true, false}) {
        auto check = [&](const char* form, const Runner& run, const CompareOptions& how) {
          const std::string found = difference(observe(reference, inputs, backward, grad_mode),
                                               observe(run, inputs, backward, grad_mode), how);
          if (!found.empty()) {
            report += fmt::format("{}, {} pieces, backward {}, grad {}: {}\n", form,
                                  compiled->pieces().size(), backward.str(), grad_mode, found);
          }
        };
        check("lean", broken, options);
        check("lean again", broken, options);
        const bool stock_promises =
            backward.kind == Backward::Kind::All || backward.kind == Backward::Kind::Output;
        if (stock_promises && options.stitched) {
          CompareOptions how = options;
          how.flags = false;
          check("stitched", outer, how);
          check("stitched again", outer, how);
        }
      }
    }
  }
  return report;
}

}  // namespace faultline::test
