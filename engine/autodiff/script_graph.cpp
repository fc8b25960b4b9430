#include "engine/autodiff/script_graph.h"

#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/passes/inliner.h>

namespace faultline {

std::shared_ptr<torch::jit::Graph> scriptGraph(const std::string& name, const std::string& source) {
  torch::jit::CompilationUnit unit;
  unit.define(std::nullopt, source, torch::jit::nativeResolver(), nullptr);
  auto graph = torch::jit::toGraphFunction(unit.get_function(name)).graph()->copy();
  torch::jit::Inline(*graph);
  return graph;
}

}  // namespace faultline
