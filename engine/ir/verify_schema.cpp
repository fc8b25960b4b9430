#include <fmt/format.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "engine/ir/describe.h"
#include "engine/ir/nearest.h"
#include "engine/ir/verify_rules.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using c10::FunctionSchema;
using torch::jit::Operator;

constexpr size_t kListedSchemas = 4;

std::string unknownOperator(const std::string& name) {
  std::set<std::string> names;
  for (const auto& op : torch::jit::getAllOperators()) {
    names.insert(op->schema().name());
  }
  return fmt::format("there is no operator '{}'{}", name,
                     didYouMean(name, std::vector<std::string>(names.begin(), names.end())));
}

std::string inputTypes(const Node& node) {
  std::vector<std::string> types;
  for (const Value* input : node.inputs()) {
    types.push_back(writeType(*input->type()));
  }
  return "(" + c10::Join(", ", types) + ")";
}

// Why this one overload does not take the inputs; empty if it is not clear.
std::string mismatch(const Node& node, const FunctionSchema& schema) {
  const auto& formals = schema.arguments();
  if (node.inputs().size() < formals.size() ||
      (!schema.is_vararg() && node.inputs().size() > formals.size())) {
    return fmt::format("{} inputs, expected {}", node.inputs().size(), formals.size());
  }
  c10::TypeEnv environment;
  for (size_t i = 0; i < formals.size(); ++i) {
    const c10::TypePtr actual = node.inputs()[i]->type();
    c10::TypePtr formal = formals[i].type();
    const auto matched = c10::matchTypeVariables(formal, actual, environment);
    if (const c10::TypePtr resolved = c10::tryEvalTypeVariables(formal, environment)) {
      formal = resolved;
    }
    if (!matched.success() || !actual->isSubtypeOf(*formal)) {
      return fmt::format("input {} ({}) is {}, expected {}", i, formals[i].name(), writeType(*actual),
                         formals[i].type()->str());
    }
  }
  return "";
}

std::string noOverload(const Node& node, const std::vector<std::shared_ptr<Operator>>& overloads) {
  if (overloads.size() == 1) {
    return fmt::format("{}; the operator is {}", mismatch(node, overloads[0]->schema()),
                       c10::toString(overloads[0]->schema()));
  }
  std::string text = fmt::format("no overload takes {}; there are", shortened(inputTypes(node)));
  for (size_t i = 0; i < overloads.size() && i < kListedSchemas; ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ";", c10::toString(overloads[i]->schema()));
  }
  return text + (overloads.size() > kListedSchemas ? "; …" : "");
}

std::string outputProblem(const Node& node, const FunctionSchema& schema) {
  const auto& returns = schema.returns();
  const size_t outputs = node.outputs().size();
  if (outputs < returns.size() || (!schema.is_varret() && outputs > returns.size())) {
    return fmt::format("{} outputs, the operator gives {}", outputs, returns.size());
  }
  // A cast says by its output what the program knows and the schema does not.
  if (node.kind() == c10::prim::unchecked_cast) {
    return "";
  }
  c10::TypeEnv environment;
  for (size_t i = 0; i < schema.arguments().size() && i < node.inputs().size(); ++i) {
    (void)c10::matchTypeVariables(schema.arguments()[i].type(), node.inputs()[i]->type(), environment);
  }
  for (size_t i = 0; i < returns.size(); ++i) {
    const c10::TypePtr given = c10::tryEvalTypeVariables(returns[i].type(), environment);
    const c10::TypePtr written = node.outputs()[i]->type();
    if (given && !typeFits(written, given)) {
      return fmt::format("output {} (%{}) is written as {}, the operator gives {}", i,
                         node.outputs()[i]->debugName(), writeType(*written), given->str());
    }
  }
  return "";
}

}  // namespace

std::string schemaProblem(const Node& node) {
  const auto& overloads = torch::jit::getAllOperatorsFor(node.kind());
  if (overloads.empty()) {
    return unknownOperator(node.kind().toQualString());
  }
  const Operator* chosen = node.maybeOperator();
  if (chosen == nullptr) {
    return noOverload(node, overloads);
  }
  if (!node.blocks().empty()) {
    return fmt::format("an operator has no blocks, found {}", node.blocks().size());
  }
  return outputProblem(node, chosen->schema());
}

}  // namespace faultline
