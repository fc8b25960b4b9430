#include "engine/ir/callers.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "faultline/graph_break.h"

namespace faultline::test {
namespace {

std::shared_ptr<Graph> inlinedGraph() {
  torch::jit::CompilationUnit unit;
  unit.define(c10::QualifiedName("model"), R"(
def innermost(x, y):
    return torch.mm(x, y)
def middle(x, y):
    return innermost(x, y) + 1
def outermost(x, y):
    return middle(torch.sin(x), y)
)",
              torch::jit::nativeResolver(), nullptr);
  auto graph =
      torch::jit::toGraphFunction(unit.get_function(c10::QualifiedName("model.outermost"))).graph()->copy();
  torch::jit::Inline(*graph);
  return graph;
}

template <class Run>
std::string messageOf(const Run& run) {
  torch::jit::Stack stack{at::ones({2, 3}), at::ones({2, 3})};
  try {
    run(stack);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// What is thrown names the functions, which are gone.
void expectNames(const std::string& message) {
  for (const char* name : {"innermost", "middle"}) {
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

TEST(Callers, AnInlinedGraphOutlivesTheFunctionsItCameFrom) {
  auto graph = inlinedGraph();
  detachFromCallers(*graph);
  expectNames(messageOf([&](torch::jit::Stack& stack) {
    torch::jit::InterpreterState(torch::jit::Code(graph, "program")).run(stack);
  }));
}

TEST(Callers, ACompiledGraphOutlivesThemToo) {
  std::optional<CompiledGraph> compiled;
  {
    auto graph = inlinedGraph();
    compiled = compile(graph, planBreaks(*graph, BreakPolicy::every(1)).value()).value();
  }
  expectNames(messageOf([&](torch::jit::Stack& stack) { compiled->run(stack); }));
}

}  // namespace
}  // namespace faultline::test
