#include "engine/autodiff/formulas.h"

#include <unordered_map>

#include <torch/csrc/jit/ir/constants.h>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/own_formulas.h"
#include "engine/autodiff/script_graph.h"

namespace faultline {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

bool always(const Node*) { return true; }

namespace {

bool dimIsEmpty(const Node* node) {
  const Value* dim = node->namedInput(torch::jit::attr::dim);
  auto constant = torch::jit::toIValue(dim);
  if (constant) {
    return constant->isNone() || constant->toIntVector().empty();
  }
  return dim->node()->kind() != prim::ListConstruct || dim->node()->inputs().empty();
}

// linear's weight gradient flattens by reshape(-1, n), which is refused for tensors without elements, and
// both gradients take a weight that is a vector for a matrix.
void replaceLinear(torch::jit::Block* formula) {
  static const auto input_gradient = scriptGraph("input_gradient", R"(
def input_gradient(grad, weight):
    if weight.dim() == 1:
        result = grad.unsqueeze(-1) * weight
    else:
        result = torch.matmul(grad, weight)
    return result
)");
  static const auto weight_gradient = scriptGraph("weight_gradient", R"(
def weight_gradient(grad, input, weight):
    if weight.dim() == 1:
        result = (grad.unsqueeze(-1) * input).unsqueeze(0).flatten(0, -2).sum(0)
    else:
        result = torch.matmul(grad.unsqueeze(0).flatten(0, -2).t(), input.unsqueeze(0).flatten(0, -2))
    return result
)");
  auto replace = [](Node* product, torch::jit::Graph& by, std::vector<Value*> operands) {
    torch::jit::WithInsertPoint before(product);
    product->output()->replaceAllUsesWith(torch::jit::insertGraph(*product->owningGraph(), by, operands)[0]);
  };
  for (Node* product : formula->nodes()) {
    if (product->kind() != c10::aten::matmul) {
      continue;
    }
    Node* left = product->input(0)->node();
    if (left->kind() != c10::aten::t) {
      replace(product, *input_gradient, {product->input(0), product->input(1)});
      continue;
    }
    // matmul(grad.reshape(-1, n).t(), input.reshape(-1, m)), n and m from weight.size()
    Node *rows = left->input()->node(), *columns = product->input(1)->node();
    Value* weight = columns->input(1)->node()->input(1)->node()->input(0)->node()->input(0);
    replace(product, *weight_gradient, {rows->input(0), columns->input(0), weight});
  }
}

struct Replacement {
  std::string_view op;
  void (*replace)(torch::jit::Block*);
};

const std::vector<Replacement>& replacements() {
  static const std::vector<Replacement> rows = {{"aten::linear", replaceLinear}};
  return rows;
}

}  // namespace

const std::vector<FormulaFault>& formulaFaults() {
  static const std::vector<FormulaFault> rows = {
#define FAULTLINE_FORMULA(schema, when, condition, reason) {schema, when, condition, reason},
#define FAULTLINE_STRICTER(schema, condition)
#include "engine/autodiff/formulas.def"
#undef FAULTLINE_FORMULA
#undef FAULTLINE_STRICTER
  };
  return rows;
}

const std::vector<StricterFormula>& stricterFormulas() {
  static const std::vector<StricterFormula> rows = {
#define FAULTLINE_FORMULA(schema, when, condition, reason)
#define FAULTLINE_STRICTER(schema, condition) {schema, condition},
#include "engine/autodiff/formulas.def"
#undef FAULTLINE_FORMULA
#undef FAULTLINE_STRICTER
  };
  return rows;
}

const FormulaFault* findFormulaFault(const Node* node) {
  static const auto* by_schema = [] {
    auto* map = new std::unordered_map<std::string, const FormulaFault*>;
    for (const FormulaFault& row : formulaFaults()) {
      map->emplace(row.schema, &row);
    }
    return map;
  }();
  auto it = by_schema->find(schemaName(node));
  return it != by_schema->end() && it->second->when(node) && !hasOwnFormula(node) ? it->second : nullptr;
}

void flattenRows(torch::jit::Block* block) {
  for (Node* node : block->nodes()) {
    for (torch::jit::Block* inner : node->blocks()) {
      flattenRows(inner);
    }
    if (node->kind() != c10::aten::reshape || node->input(1)->node()->kind() != prim::ListConstruct) {
      continue;
    }
    // x.reshape(-1, x.size()[-1])
    const auto sizes = node->input(1)->node()->inputs();
    if (sizes.size() != 2 || torch::jit::constant_as<int64_t>(sizes[0]) != -1 ||
        sizes[1]->node()->kind() != c10::aten::__getitem__) {
      continue;
    }
    Node* last = sizes[1]->node();
    Node* size = last->input(0)->node();
    if (torch::jit::constant_as<int64_t>(last->input(1)) != -1 || size->kind() != c10::aten::size ||
        size->input(0) != node->input(0)) {
      continue;
    }
    torch::jit::Graph* graph = node->owningGraph();
    torch::jit::WithInsertPoint before(node);
    Value* rows = graph->insert(c10::aten::unsqueeze, {node->input(0), 0});
    node->output()->replaceAllUsesWith(graph->insert(c10::aten::flatten, {rows, 0, -2}));
  }
}

void dropIdleDropout(torch::jit::Graph& graph) {
  for (auto it = graph.nodes().begin(); it != graph.nodes().end(); ++it) {
    if (it->kind() != c10::aten::dropout) {
      continue;
    }
    const auto train = torch::jit::constant_as<bool>(it->namedInput("train"));
    const auto probability = torch::jit::constant_as<double>(it->namedInput("p"));
    if ((train && !*train) || (probability && *probability == 0)) {
      it->output()->replaceAllUsesWith(it->input(0));
      it.destroyCurrent();
    }
  }
}

void replaceFormulas(torch::jit::Graph& backward) {
  for (Node* node : backward.nodes()) {
    if (node->kind() != prim::GradOf) {
      continue;
    }
    for (const Replacement& row : replacements()) {
      if (node->s(torch::jit::attr::name) == row.op) {
        row.replace(node->blocks()[0]);
      }
    }
  }
}

}  // namespace faultline
