#include "engine/ir/callers.h"

#include <map>
#include <mutex>

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/scope.h>

#include "engine/ir/walk.h"

namespace faultline {
namespace {

using torch::jit::Function;
using torch::jit::InlinedCallStack;
using torch::jit::InlinedCallStackPtr;

// One per name, never destroyed.
Function* lastingFunction(const std::string& name) {
  static std::mutex mutex;
  static auto& functions = *new std::map<std::string, std::unique_ptr<Function>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Function>& function = functions[name];
  if (!function) {
    function = std::make_unique<torch::jit::GraphFunction>(
        c10::QualifiedName(name.empty() ? "unknown" : name), nullptr, nullptr);
  }
  return function.get();
}

class Detacher {
 public:
  InlinedCallStackPtr of(const InlinedCallStackPtr& stack) {
    if (auto it = made_.find(stack.get()); it != made_.end()) return it->second;
    std::vector<const InlinedCallStack*> calls;
    for (const InlinedCallStack* call = stack.get(); call != nullptr;) {
      calls.push_back(call);
      const auto callee = call->callee();
      call = callee ? callee->get() : nullptr;
    }
    InlinedCallStackPtr result;
    for (auto it = calls.rbegin(); it != calls.rend(); ++it) {
      Function* function = lastingFunction((*it)->function_name());
      result = result ? c10::make_intrusive<InlinedCallStack>(result, function, (*it)->source_range())
                      : c10::make_intrusive<InlinedCallStack>(function, (*it)->source_range());
    }
    made_.emplace(stack.get(), result);
    return result;
  }

 private:
  std::unordered_map<const InlinedCallStack*, InlinedCallStackPtr> made_;
};

}  // namespace

void detachFromCallers(torch::jit::Graph& graph) {
  Detacher detacher;
  std::vector<InlinedCallStackPtr> replaced;  // their addresses are keys
  forEachNode(graph.block(), [&](torch::jit::Node* node) {
    if (auto stack = node->callstack()) {
      node->setCallStack(detacher.of(*stack));
      replaced.push_back(std::move(*stack));
    }
  });
}

}  // namespace faultline
