// Graphs that libtorch's own front end makes, for tests.
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <memory>
#include <string>
#include <vector>

namespace faultline::testing {

// Functions of two 3x3 matrices: arithmetic, control flow, containers, in-place ops and views, calls.
inline const std::vector<std::string> kPrograms = {
    R"(
def f(x, y):
    a = torch.sigmoid(x * y + 1.5)
    b = torch.tanh(a) - y.t().t()
    return (a * b).sum(), b
)",
    R"(
def f(x, y):
    z = x
    for i in range(3):
        if bool((z.sum() > 0).item()):
            z = z * y
        else:
            z = z.relu() + i
    return z
)",
    R"(
def f(x, y):
    xs = [x, y, x + y]
    t = (torch.cat(xs, 0), 1, "text")
    d = {"a": x, "b": y}
    n = 0
    while n < 3:
        n += t[1]
    return t[0] * n, d["a"], xs[1].size(0)
)",
    R"(
def f(x, y):
    z = x.clone()
    z.add_(y)
    z.mul_(2.0)
    w = torch.max(z, 1)
    print(w[0].shape)
    return w[0], torch.zeros([2, 3]).to(torch.device("cpu")), [float("inf"), -1e300]
)",
    R"(
def g(x, bias: Optional[Tensor]):
    if bias is not None:
        return x + bias
    return x

def f(x, y):
    a = g(x, None)
    b = g(a, y)
    assert b.dim() == 2, "two dimensions"
    return torch.dropout(b, 0.5, False)
)",
};

// With function calls inlined.
inline std::vector<std::shared_ptr<torch::jit::Graph>> compiledGraphs() {
  // Graphs point at the functions of their unit, even those that were inlined.
  static std::vector<std::shared_ptr<torch::jit::CompilationUnit>> units;
  std::vector<std::shared_ptr<torch::jit::Graph>> graphs;
  for (const std::string& source : kPrograms) {
    units.push_back(std::make_shared<torch::jit::CompilationUnit>());
    units.back()->define(std::nullopt, source, torch::jit::nativeResolver(), nullptr);
    auto graph = torch::jit::toGraphFunction(units.back()->get_function("f")).graph()->copy();
    torch::jit::Inline(*graph);
    graphs.push_back(graph);
  }
  return graphs;
}

inline torch::jit::Stack matrixInputs() {
  return {at::rand({3, 3}).requires_grad_(), at::rand({3, 3}).requires_grad_()};
}

}  // namespace faultline::testing
