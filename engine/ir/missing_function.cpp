#include "engine/ir/missing_function.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

namespace faultline {
namespace {

torch::jit::Function* missingFunction() {
  // Never destroyed: types point at it.
  static torch::jit::Function* const function = [] {
    auto graph = std::make_shared<torch::jit::Graph>();
    torch::jit::Value* const message =
        graph->insertConstant("this function is not part of the text of the graph");
    torch::jit::Value* const none = graph->insertConstant(c10::IValue());
    graph->insertNode(graph->create(c10::prim::RaiseException, {message, none}, 0));
    graph->registerOutput(none);
    return new torch::jit::GraphFunction(c10::QualifiedName("faultline.missing_function"), graph, nullptr);
  }();
  return function;
}

}  // namespace

c10::TypePtr missingFunctionType() {
  static const c10::TypePtr type = c10::FunctionType::create(missingFunction());
  return type;
}

bool isMissingFunction(const c10::Type& type) {
  const auto* function = type.castRaw<c10::FunctionType>();
  return function != nullptr && function->function() == missingFunction();
}

}  // namespace faultline
