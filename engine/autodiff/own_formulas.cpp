#include "engine/autodiff/own_formulas.h"

#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_map>

#include <fmt/format.h>
#include <torch/csrc/jit/ir/constants.h>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/formulas.h"
#include "engine/autodiff/script_graph.h"
#include "engine/support/check.h"
#include "engine/support/torch_compat.h"

namespace faultline {

using torch::jit::Graph;
using torch::jit::Node;

namespace {

// Whether an optional argument is there; unknown: neither this nor its contrary.
bool isGiven(const Node* node, const char* argument) {
  const auto* value = node->namedInput(argument);
  const auto constant = torch::jit::toIValue(value);
  return constant ? !constant->isNone() : value->type()->kind() != c10::TypeKind::OptionalType;
}
bool isNone(const Node* node, const char* argument) {
  const auto constant = torch::jit::toIValue(node->namedInput(argument));
  return constant && constant->isNone();
}

// Eager's gradient at a bound is 0; of versions where it is 1 libtorch's formula is right.
bool boundIsOutside(const Node*) { return !compat::kClampFormulaIsEagers; }
bool clampsBelow(const Node* node) {
  return boundIsOutside(node) && isGiven(node, "min") && isNone(node, "max");
}
bool rounds(const Node* node) { return isGiven(node, "rounding_mode"); }
bool divides(const Node* node) { return isNone(node, "rounding_mode"); }
bool keepsDtype(const Node* node) { return isNone(node, "dtype"); }
bool namesDims(const Node* node) { return isGiven(node, "dim") && keepsDtype(node); }
bool wholeSlice(const Node* node) { return isGiven(node, "start") && isGiven(node, "end"); }

bool endsWith(const std::string& text, std::string_view end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

const c10::FunctionSchema& schemaOf(std::string_view schema) {
  const size_t dot = schema.find('.');
  const std::string name(schema.substr(0, dot));
  const std::string overload(dot == std::string_view::npos ? std::string_view() : schema.substr(dot + 1));
  for (const auto& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    if (op->schema().overload_name() == overload) {
      return op->schema();
    }
  }
  FAULTLINE_CHECK(false, "a formula of ours is about an operator that exists");
  std::abort();
}

std::string typeOf(const std::string& parameter, bool may_be_none, const c10::FunctionSchema& schema) {
  if (endsWith(parameter, "_size")) {
    return "List[int]";
  }
  if (endsWith(parameter, "_sum")) {
    return "Optional[List[int]]";
  }
  for (const auto& argument : schema.arguments()) {
    if (argument.name() == parameter) {
      const auto optional = may_be_none ? nullptr : argument.type()->cast<c10::OptionalType>();
      return (optional ? optional->getElementType() : argument.type())->annotation_str();
    }
  }
  return "Tensor";
}

// What formulas call. `keeping`: eager keeps what two of an op's formulas use whichever of them is asked for,
// and refuses a write to it; real formulas do nothing with it.
constexpr const char* kFunctions = R"(
def restored(reduced: Tensor, sizes: List[int], dims: List[int], keepdim: bool):
    result = reduced
    if not keepdim:
        rank = len(sizes)
        for i in range(rank):
            if i in dims or i - rank in dims:
                result = result.unsqueeze(i)
    return result

def shared(grad: Tensor, result: Tensor, self: Tensor, dims: List[int], keepdim: bool):
    sizes = self.size()
    mask = restored(result, sizes, dims, keepdim) == self
    return (restored(grad, sizes, dims, keepdim) * mask) / mask.sum(dims, True)

def summed_from_behind(grad: Tensor, dim: int):
    result = grad
    if grad.dim() > 0 and grad.numel() > 1:
        result = grad.flip([dim]).cumsum(dim).flip([dim])
    return result

def clamped(grad: Tensor, self: Tensor, min: Optional[number], max: Optional[number]):
    result = grad
    if min is not None:
        result = torch.where(self > min, result, 0)
    if max is not None:
        result = torch.where(self < max, result, 0)
    return result

def keeping(grad: Tensor, kept: Tensor):
    return -grad if torch.is_complex(kept) else grad

def mish_gradient(grad: Tensor, self: Tensor):
    if torch.is_grad_enabled():
        inner = self.exp().log1p().tanh()  # not softplus: its gradient is right where eager's overflows
        result = grad * (inner + self * torch.sigmoid(self) * (1 - inner * inner))
    else:
        result = torch.mish_backward(grad, self)
    return result

def from_front(start: int, size: int):
    return start + size if start < 0 else start

def var_gradient(grad: Tensor, self: Tensor, unbiased: bool):
    freedom = self.numel() - int(unbiased)
    if freedom <= 0:
        result = grad * torch.where(self == self.mean(), float('nan'), float('inf'))
    else:
        result = (2.0 / float(freedom)) * grad * (self - self.mean())
    return result
)";

std::shared_ptr<Graph> build(const OwnFormula& formula) {
  const c10::FunctionSchema& schema = schemaOf(formula.schema);
  std::string parameters;
  std::istringstream names{std::string(formula.parameters)};
  for (std::string name; names >> name;) {
    const bool may_be_none = name.back() == '?';
    name.resize(name.size() - (may_be_none ? 1 : 0));
    parameters +=
        fmt::format("{}{}: {}", parameters.empty() ? "" : ", ", name, typeOf(name, may_be_none, schema));
  }
  return scriptGraph(
      "f", fmt::format("{}\ndef f({}):\n    return {}\n", kFunctions, parameters, formula.expression));
}

}  // namespace

const std::vector<OwnFormula>& ownFormulas() {
  static const std::vector<OwnFormula> rows = {
#define FAULTLINE_OWN(schema, when, operand, parameters, expression) \
  {schema, when, operand, parameters, expression},
#include "engine/autodiff/own_formulas.def"
#undef FAULTLINE_OWN
  };
  return rows;
}

namespace {

const std::vector<const OwnFormula*>* rowsOf(const Node* node) {
  static const auto* by_schema = [] {
    auto* map = new std::unordered_map<std::string, std::vector<const OwnFormula*>>;
    for (const OwnFormula& row : ownFormulas()) {
      (*map)[std::string(row.schema)].push_back(&row);
    }
    return map;
  }();
  auto it = by_schema->find(schemaName(node));
  return it == by_schema->end() ? nullptr : &it->second;
}

}  // namespace

std::vector<const OwnFormula*> findOwnFormulas(const Node* node) {
  std::vector<const OwnFormula*> found;
  if (const auto* rows = rowsOf(node)) {
    for (const OwnFormula* row : *rows) {
      if (row->when(node)) {
        found.push_back(row);
      }
    }
  }
  return found;
}

bool hasOwnFormula(const Node* node) { return !findOwnFormulas(node).empty(); }

const std::shared_ptr<Graph>& gradientGraph(const OwnFormula& formula) {
  static std::vector<std::once_flag> made(ownFormulas().size());
  static std::vector<std::shared_ptr<Graph>> graphs(ownFormulas().size());
  const auto row = static_cast<size_t>(&formula - ownFormulas().data());
  std::call_once(made[row], [&] { graphs[row] = build(formula); });
  return graphs[row];
}

}  // namespace faultline
