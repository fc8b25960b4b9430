#include "oracles/exec/seam_op.h"

#include <ATen/core/stack.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include "engine/support/check.h"

namespace faultline {
namespace {

thread_local const std::vector<SeamHook>* current_hooks = nullptr;
thread_local HookSite* current_site = nullptr;

void runSeam(torch::jit::Stack& stack) {
  const auto id = static_cast<size_t>(torch::jit::pop(stack).toInt());
  if (current_hooks == nullptr) return;
  FAULTLINE_CHECK(id < current_hooks->size(), "a seam node of another case");
  const SeamHook& hook = (*current_hooks)[id];
  installHook(hook.kind, hook.action, hook.seam, torch::jit::peek(stack, 0, 1).toTensor(), *current_site,
              current_site->seamAct(hook.kind, hook.action, hook.seam));
}

const torch::jit::RegisterOperators registered({torch::jit::Operator(
    "faultline::seam(Tensor(a) x, int id) -> Tensor(a)", [](torch::jit::Stack& stack) { runSeam(stack); },
    c10::AliasAnalysisKind::FROM_SCHEMA)});

}  // namespace

void insertSeamNodes(torch::jit::Graph& graph, const std::vector<SeamHook>& hooks) {
  const auto kind = c10::Symbol::fromQualString("faultline::seam");
  for (size_t i = 0; i < hooks.size(); ++i) {
    torch::jit::Node* producer = hooks[i].producer;
    FAULTLINE_CHECK(producer != nullptr && !producer->outputs().empty(), "a seam on a node without outputs");
    torch::jit::Value* value = producer->outputs()[0];
    if (!value->type()->isSubtypeOf(*c10::TensorType::get())) continue;
    const torch::jit::WithInsertPoint here(producer->next());
    torch::jit::Value* id = graph.insertConstant(static_cast<int64_t>(i));
    torch::jit::Node* seam = graph.create(kind, {value, id}, 1);
    seam->output()->setType(value->type());
    graph.insertNode(seam);
    value->replaceAllUsesAfterNodeWith(seam, seam->output());
  }
}

SeamScope::SeamScope(const std::vector<SeamHook>& hooks, HookSite& site)
    : hooks_before_(current_hooks), site_before_(current_site) {
  current_hooks = &hooks;
  current_site = &site;
}

SeamScope::~SeamScope() {
  current_hooks = hooks_before_;
  current_site = site_before_;
}

}  // namespace faultline
