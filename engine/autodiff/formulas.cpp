#include "engine/autodiff/formulas.h"

#include <unordered_map>

#include <torch/csrc/jit/ir/constants.h>

#include "engine/autodiff/differentiability.h"

namespace faultline {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

bool always(const Node*) { return true; }

bool dim_is_empty(const Node* node) {
  const Value* dim = node->namedInput(torch::jit::attr::dim);
  auto constant = torch::jit::toIValue(dim);
  if (constant) {
    return constant->isNone() || constant->toIntVector().empty();
  }
  return dim->node()->kind() != prim::ListConstruct || dim->node()->inputs().empty();
}

// libtorch gives relu's gradient as grad * (result > 0).type_as(result): three ops where eager has one, and
// none of them passes the zero that a second backward finds in eager.
void replaceRelu(torch::jit::Block* formula) {
  Node* product = formula->outputs()[0]->node();
  if (product->kind() != c10::aten::mul || product->input(1)->node()->kind() != c10::aten::type_as) {
    return;
  }
  Node* positive = product->input(1)->node()->input(0)->node();
  if (positive->kind() != c10::aten::gt) {
    return;
  }
  torch::jit::Graph* graph = product->owningGraph();
  torch::jit::WithInsertPoint before(product);
  Value* gradient = graph->insert(c10::aten::threshold_backward, {product->input(0), positive->input(0), 0});
  product->output()->replaceAllUsesWith(gradient);
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
  return it != by_schema->end() && it->second->when(node) ? it->second : nullptr;
}

void replaceFormulas(torch::jit::Graph& backward) {
  for (Node* node : backward.nodes()) {
    if (node->kind() == prim::GradOf && node->s(torch::jit::attr::name) == "aten::relu") {
      replaceRelu(node->blocks()[0]);
    }
  }
}

}  // namespace faultline
