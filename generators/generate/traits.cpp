#include <set>
#include <sstream>

#include "faultline/ir.h"
#include "generators/generate/generate.h"
#include "generators/ops/op_row.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
namespace prim = torch::jit::prim;

namespace {

bool returnsView(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  }
  return false;
}

void addNode(const Node* node, std::set<std::string>& traits) {
  const torch::jit::Operator* op = node->maybeOperator();
  std::string schema = node->kind().toQualString();
  if (op != nullptr && node->kind().is_aten()) schema = c10::toString(op->schema().operator_name());
  traits.insert("op:" + schema);

  if (node->kind() == prim::If) traits.insert({"control_flow", "if"});
  if (node->kind() == prim::Loop) traits.insert({"control_flow", "loop"});
  if (node->kind() == prim::profile) traits.insert("profile_nodes");
  if (node->kind() == prim::ListConstruct || node->kind() == prim::ListUnpack) traits.insert("list");
  if (node->kind() == prim::TupleConstruct || node->kind() == prim::TupleUnpack) traits.insert("tuple");
  if (node->kind() == prim::unchecked_cast) traits.insert("optional");
  if (node->hasAttribute(torch::jit::attr::Subgraph)) traits.insert("subgraph");
  if (schema == "aten::set_grad_enabled") traits.insert("no_grad");
  if (schema == "aten::detach") traits.insert("detach");
  if (node->kind() == prim::Constant && node->output()->type()->kind() == c10::TypeKind::TensorType) {
    traits.insert("tensor_constant");
  }

  if (op == nullptr || !node->kind().is_aten()) return;
  const OpRow* row = findOpRowOfSchema(schema);
  bool tensor_result =
      !node->outputs().empty() && node->output(0)->type()->kind() == c10::TypeKind::TensorType;
  if (op->schema().is_mutable() && schema.rfind("aten::append", 0) != 0) traits.insert("mutation");
  bool view = row != nullptr ? row->view : tensor_result && returnsView(op->schema());
  if (view) traits.insert("view");
  if (row != nullptr && row->random) traits.insert("random");
  if (row != nullptr && row->differentiable) traits.insert("differentiable");
}

void addBlock(const Block* block, std::set<std::string>& traits) {
  for (const Node* node : block->nodes()) {
    addNode(node, traits);
    for (const Block* inner : node->blocks()) addBlock(inner, traits);
    if (node->hasAttribute(torch::jit::attr::Subgraph)) {
      addBlock(node->g(torch::jit::attr::Subgraph)->block(), traits);
    }
  }
}

// True when any input of any run, elements of containers included, requires grad.
bool addSpec(const InputSpec& spec, std::set<std::string>& traits) {
  bool requires_grad = spec.requires_grad;
  switch (spec.kind) {
    case InputSpec::Kind::Tensor:
      for (int64_t size : spec.sizes) {
        if (size == 0) traits.insert("zero_size");
      }
      if (spec.strides) traits.insert("strided_input");
      if (!spec.leaf) traits.insert("non_leaf_input");
      if (spec.dtype != at::kFloat) traits.insert("dtype:" + writeDtype(spec.dtype));
      break;
    case InputSpec::Kind::SameAs:
      traits.insert("shared_input");
      break;
    case InputSpec::Kind::None:
      traits.insert("none_input");
      break;
    default:
      break;
  }
  for (const InputSpec& element : spec.elements) requires_grad = addSpec(element, traits) || requires_grad;
  return requires_grad;
}

void addFlips(const Case& c, std::set<std::string>& traits) {
  for (const CaseRun& run : c.runs) {
    const CaseRun& first = c.runs.front();
    if (run.grad_mode != first.grad_mode) traits.insert({"flips", "flip:grad_mode"});
    for (size_t i = 0; i < run.inputs.size() && i < first.inputs.size(); ++i) {
      const InputSpec &a = first.inputs[i], &b = run.inputs[i];
      if (a == b) continue;
      traits.insert("flips");
      if (a.kind != b.kind) traits.insert("flip:kind");
      if (a.sizes != b.sizes) traits.insert("flip:sizes");
      if (a.dtype != b.dtype) traits.insert("flip:dtype");
      if (a.requires_grad != b.requires_grad) traits.insert("flip:requires_grad");
      if (a.bool_value != b.bool_value || a.int_value != b.int_value) traits.insert("flip:control");
    }
  }
}

std::vector<std::string> wordsOfBreaks(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void addBreaks(const Case& c, std::set<std::string>& traits) {
  std::vector<std::string> words = wordsOfBreaks(c.plan.breaks);
  if (!words.empty() && words[0] == "inside") {
    traits.insert("breaks:inside_blocks");
    words.erase(words.begin());
  }
  if (words.empty()) return;
  traits.insert("breaks:" + words[0]);
  const NodeNames names(*c.graph);
  for (size_t i = 1; words[0] == "after" && i < words.size(); ++i) {
    const Node* node = names.find(words[i]);
    if (node != nullptr && node->owningBlock() != c.graph->block()) traits.insert("breaks:inside_blocks");
  }
}

}  // namespace

std::set<std::string> caseTraits(const Case& c) {
  std::set<std::string> traits;
  addBlock(c.graph->block(), traits);
  bool requires_grad = false;
  for (const CaseRun& run : c.runs) {
    for (const InputSpec& spec : run.inputs) requires_grad = addSpec(spec, traits) || requires_grad;
    for (const BackwardSpec& backward : run.backwards) {
      if (backward.kind == BackwardSpec::Kind::Output) traits.insert("single_output");
      if (backward.kind == BackwardSpec::Kind::Double) traits.insert("double_backward");
    }
  }
  if (!requires_grad) traits.erase("differentiable");
  addFlips(c, traits);
  if (c.graph->outputs().size() > 1) traits.insert("many_returns");
  if (c.plan.breaks != "none") {
    traits.insert("breaks");
    addBreaks(c, traits);
  }
  for (const HookSpec& hook : c.plan.hooks) {
    traits.insert("hooks");
    if (!hook.seam.empty()) traits.insert("hook:seam");
    traits.insert(std::string("hook:") + hookWord(hook.kind));
    if (hook.action != HookAction::Log) traits.insert(std::string("hook:") + hookWord(hook.action));
  }
  if (c.plan.profile != "none") traits.insert("profile");
  return traits;
}

}  // namespace faultline
