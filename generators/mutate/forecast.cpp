#include "generators/mutate/forecast.h"

#include <algorithm>

#include <torch/csrc/jit/ir/constants.h>

#include "generators/generate/inputs.h"
#include "generators/ops/rules.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace aten = torch::jit::aten;

namespace {

// Further trips change no form any more, unless it grows for ever.
constexpr int64_t trips_followed = 4;

bool hasHazard(const OpRow& row, const char* hazard) {
  return std::find(row.hazards.begin(), row.hazards.end(), hazard) != row.hazards.end();
}

Form numberForm(std::optional<int64_t> number) {
  Form form;
  form.kind = Form::Kind::Number;
  form.number = number;
  return form;
}

Form unknownOf(const c10::Type& type) {
  Form form;
  if (type.kind() == c10::TypeKind::TensorType) form.kind = Form::Kind::Tensor;
  if (type.kind() == c10::TypeKind::IntType || type.kind() == c10::TypeKind::BoolType) return numberForm({});
  bool tensors = type.kind() == c10::TypeKind::ListType && type.isSubtypeOf(*c10::ListType::ofTensors());
  if (tensors) form.kind = Form::Kind::List;
  if (type.kind() == c10::TypeKind::TupleType) form.kind = Form::Kind::Tuple;
  return form;
}

bool sameForm(const Form& a, const Form& b) {
  if (a.kind != b.kind || a.known != b.known || a.number != b.number) return false;
  return !a.isTensor() || !a.known || a.sameShape(b);
}

// What holds whichever of the two it is.
Form either(const Form& a, const Form& b) {
  if (!sameForm(a, b)) {
    Form form;
    form.kind = a.kind == b.kind ? a.kind : Form::Kind::Unknown;
    return form;
  }
  Form form = a;
  form.operand.requires_grad = a.operand.requires_grad || b.operand.requires_grad;
  form.operand.contiguous = a.operand.contiguous && b.operand.contiguous;
  form.operand.usable = a.operand.usable && b.operand.usable;
  form.operand.range = joinRanges(a.operand.range, b.operand.range);
  form.leaf = a.leaf || b.leaf;
  form.frozen = a.frozen || b.frozen;
  form.repeated = a.repeated || b.repeated;
  form.sibling = a.sibling || b.sibling;
  form.hidden_view = a.hidden_view || b.hidden_view;
  return form;
}

}  // namespace

const OpRow* rowOfNode(const Node* node) {
  const torch::jit::Operator* op = node->kind().is_aten() ? node->maybeOperator() : nullptr;
  if (op == nullptr) return nullptr;
  // Operators live as long as the process.
  thread_local std::unordered_map<const torch::jit::Operator*, const OpRow*> known;
  auto [found, first] = known.emplace(op, nullptr);
  if (first) found->second = findOpRowOfSchema(c10::toString(op->schema().operator_name()));
  return found->second;
}

Forecast forecastCase(const Case& c) {
  Forecast all;
  for (const CaseRun& run : c.runs) {
    Forecast one = FormReader(c, run).read();
    all.misfits += one.misfits;
    all.spoils += one.spoils;
  }
  return all;
}

Forecast FormReader::read() {
  std::vector<Form> inputs;
  for (const InputSpec& spec : run_.inputs) inputs.push_back(inputForm(spec, inputs));
  for (size_t i = 0; i < inputs.size(); ++i) set(c_.graph->inputs()[i], inputs[i]);
  readBlock(c_.graph->block());
  for (const Value* output : c_.graph->outputs()) {
    // The generator returns nothing that autograd refuses to look at.
    if (!find(output).operand.usable) misfits_.insert(c_.graph->return_node());
  }
  return {misfits_.size(), spoils_.size()};
}

const Form& FormReader::find(const Value* value) const {
  static const Form nothing;
  auto found = forms_.find(value);
  return found == forms_.end() ? nothing : found->second;
}

Form tensorInputForm(const InputSpec& spec) {
  Form form;
  form.kind = Form::Kind::Tensor;
  form.known = true;
  form.operand.dtype = spec.dtype;
  form.operand.sizes = spec.sizes;
  form.operand.contiguous = !spec.strides;
  form.operand.requires_grad = spec.requires_grad;
  form.operand.range = rangeOfInput(spec);
  form.leaf = spec.requires_grad && spec.leaf;
  for (size_t i = 0; spec.strides && i < spec.strides->size() && i < spec.sizes.size(); ++i) {
    form.repeated = form.repeated || ((*spec.strides)[i] == 0 && spec.sizes[i] > 1);
  }
  return form;
}

Form FormReader::inputForm(const InputSpec& spec, const std::vector<Form>& earlier) {
  Form form;
  switch (spec.kind) {
    case InputSpec::Kind::Tensor:
      form = tensorInputForm(spec);
      form.object = form.maybe_object = form.memory = next_++;
      return form;
    case InputSpec::Kind::SameAs:
      return spec.same_as < earlier.size() ? earlier[spec.same_as] : form;
    case InputSpec::Kind::Int:
      return numberForm(spec.int_value);
    case InputSpec::Kind::Bool:
      return numberForm(spec.bool_value);
    case InputSpec::Kind::None:
      form.kind = Form::Kind::None;
      return form;
    case InputSpec::Kind::List:
    case InputSpec::Kind::Tuple:
      form.kind = spec.kind == InputSpec::Kind::List ? Form::Kind::List : Form::Kind::Tuple;
      form.known = true;
      for (const InputSpec& element : spec.elements) form.elements.push_back(inputForm(element, earlier));
      return form;
    default:
      return form;
  }
}

Form FormReader::constantForm(const Node* node) {
  std::optional<c10::IValue> value = torch::jit::toIValue(node->output());
  Form form = unknownOf(*node->output()->type());
  if (!value) return form;
  if (value->isNone()) form.kind = Form::Kind::None;
  if (value->isInt()) return numberForm(value->toInt());
  if (value->isBool()) return numberForm(value->toBool());
  if (!value->isTensor() || !value->toTensor().defined()) return form;
  const at::Tensor& tensor = value->toTensor();
  form.known = true;
  form.operand.dtype = tensor.scalar_type();
  form.operand.sizes = tensor.sizes().vec();
  form.operand.contiguous = tensor.is_contiguous();
  form.object = form.maybe_object = form.memory = next_++;
  form.frozen = true;
  return form;
}

void FormReader::readBlock(const Block* block) {
  for (const Node* node : block->nodes()) {
    if (before) before(node);
    readNode(node);
  }
  if (before) before(block->return_node());
}

void FormReader::readNode(const Node* node) {
  if (node->kind() == prim::If) return readIf(node);
  if (node->kind() == prim::Loop) return readLoop(node);
  bool subgraph = node->hasAttribute(torch::jit::attr::Subgraph) &&
                  node->kindOf(torch::jit::attr::Subgraph) == torch::jit::AttributeKind::g;
  if (subgraph) return readSubgraph(node);
  if (const OpRow* row = rowOfNode(node)) return readRow(node, *row);
  for (const Value* output : node->outputs()) set(output, unknownOf(*output->type()));
  readStructure(node);
}

void FormReader::readStructure(const Node* node) {
  auto input = [&](size_t i) { return i < node->inputs().size() ? find(node->input(i)) : Form(); };
  auto gather = [&](Form::Kind kind) {
    Form form;
    form.kind = kind;
    form.known = true;
    for (const Value* each : node->inputs()) form.elements.push_back(find(each));
    return form;
  };
  auto misfit = [&] {
    if (idle_ == 0) misfits_.insert(node);
  };
  switch (node->kind()) {
    case prim::Constant:
      return set(node->output(), constantForm(node));
    case prim::ListConstruct:
      return set(node->output(), gather(Form::Kind::List));
    case prim::TupleConstruct:
      return set(node->output(), gather(Form::Kind::Tuple));
    case prim::ListUnpack:
    case prim::TupleUnpack: {
      Form from = input(0);
      if (!from.known || from.elements.size() != node->outputs().size()) return misfit();
      for (size_t i = 0; i < from.elements.size(); ++i) set(node->output(i), from.elements[i]);
      return;
    }
    case prim::unchecked_cast:
    case prim::profile:
      if (node->inputs().size() == 1 && node->outputs().size() == 1) set(node->output(), input(0));
      if (node->kind() == prim::unchecked_cast && input(0).kind == Form::Kind::None) misfit();
      return;
    case aten::__isnot__:
    case aten::__is__: {
      bool known = input(0).kind == Form::Kind::Tensor || input(0).kind == Form::Kind::None;
      bool none = (input(0).kind == Form::Kind::None) == (input(1).kind == Form::Kind::None);
      if (known) set(node->output(), numberForm(none == (node->kind() == aten::__is__)));
      return;
    }
    case aten::gt:
      if (input(0).number && input(1).number) {
        set(node->output(), numberForm(*input(0).number > *input(1).number));
      }
      return;
    case aten::append: {
      Form list = input(0);
      if (list.known) list.elements.push_back(input(1));
      set(node->input(0), list);
      return set(node->output(), list);
    }
    case aten::__getitem__: {
      Form list = input(0), index = input(1);
      auto count = static_cast<int64_t>(list.elements.size());
      if (list.kind != Form::Kind::List) return;
      if (!list.known || !index.number || *index.number < -count || *index.number >= count) return misfit();
      return set(node->output(),
                 list.elements[static_cast<size_t>(*index.number + (*index.number < 0 ? count : 0))]);
    }
    default:
      break;
  }
  if (node->kind() == c10::Symbol::aten("is_grad_enabled")) {
    set(node->output(), numberForm(gradients_ ? std::optional<int64_t>(*gradients_) : std::nullopt));
  }
  if (node->kind() == c10::Symbol::aten("set_grad_enabled")) {
    gradients_ = input(0).number ? std::optional<bool>(*input(0).number != 0) : std::nullopt;
  }
}

void FormReader::readIdle(const Block* block) {
  auto forms = forms_;
  auto saved = saved_;
  auto gradients = gradients_;
  ++idle_;
  readBlock(block);
  --idle_;
  forms_ = std::move(forms);
  saved_ = std::move(saved);
  gradients_ = gradients;
}

void FormReader::readIf(const Node* node) {
  const Block *yes = node->blocks()[0], *no = node->blocks()[1];
  std::optional<int64_t> taken = find(node->input()).number;
  if (taken) {
    readIdle(*taken ? no : yes);
    const Block* block = *taken ? yes : no;
    readBlock(block);
    for (size_t i = 0; i < node->outputs().size(); ++i) set(node->output(i), find(block->outputs()[i]));
    return;
  }
  readBlock(yes);
  readBlock(no);
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    set(node->output(i), either(find(yes->outputs()[i]), find(no->outputs()[i])));
  }
}

void FormReader::readLoop(const Node* node) {
  const Block* body = node->blocks()[0];
  std::optional<int64_t> known = find(node->input(0)).number, begins = find(node->input(1)).number;
  int64_t trips = std::clamp<int64_t>(known.value_or(1), 0, trips_followed);
  if (begins && *begins == 0) trips = 0;
  std::vector<Form> carried;
  for (size_t i = 2; i < node->inputs().size(); ++i) carried.push_back(find(node->input(i)));
  std::vector<Form> initial = carried;
  auto bind = [&](std::optional<int64_t> trip) {
    set(body->inputs()[0], numberForm(trip));
    for (size_t i = 0; i < carried.size(); ++i) set(body->inputs()[i + 1], carried[i]);
  };
  if (trips == 0) {
    bind(0);
    readIdle(body);
  }
  for (int64_t trip = 0; trip < trips; ++trip) {
    bind(known ? std::optional<int64_t>(trip) : std::nullopt);
    readBlock(body);
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = find(body->outputs()[i + 1]);
  }
  for (size_t i = 0; i < carried.size(); ++i) {
    set(node->output(i), known && begins ? carried[i] : either(initial[i], carried[i]));
  }
}

void FormReader::readSubgraph(const Node* node) {
  const torch::jit::Graph& subgraph = *node->g(torch::jit::attr::Subgraph);
  for (size_t i = 0; i < node->inputs().size(); ++i) set(subgraph.inputs()[i], find(node->input(i)));
  readBlock(subgraph.block());
  for (size_t i = 0; i < node->outputs().size(); ++i) set(node->output(i), find(subgraph.outputs()[i]));
}

std::optional<c10::IValue> FormReader::knownValue(const Value* value) const {
  if (value->node()->kind() == prim::Constant) return torch::jit::toIValue(value);
  const Form& form = find(value);
  if (!form.number) return std::nullopt;
  if (value->type()->kind() == c10::TypeKind::BoolType) return c10::IValue(*form.number != 0);
  return c10::IValue(*form.number);
}

Operand FormReader::operandOf(const Form& form) const {
  Operand operand = form.operand;
  bool tracked = gradientsMayBeOn();
  bool refused = form.hidden_view || form.leaf || form.sibling;
  operand.writable = !form.frozen && !form.repeated && !(tracked && operand.requires_grad && refused);
  return operand;
}

void FormReader::readRow(const Node* node, const OpRow& row) {
  std::vector<FormArgument> arguments;
  std::vector<std::vector<Operand>> tensors;
  std::vector<Form> operands;
  bool known = true;
  for (const Value* input : node->inputs()) {
    const Form& form = find(input);
    FormArgument argument;
    size_t first = operands.size();
    if (form.isTensor()) {
      operands.push_back(form);
    } else if (form.kind == Form::Kind::List) {
      known = known && form.known;
      operands.insert(operands.end(), form.elements.begin(), form.elements.end());
    } else {
      argument.number = knownValue(input);
    }
    for (size_t i = first; i < operands.size(); ++i) {
      known = known && operands[i].isTensor() && operands[i].known;
      argument.tensors.push_back(operandOf(operands[i]));
    }
    tensors.push_back(argument.tensors);
    arguments.push_back(std::move(argument));
  }
  std::optional<ResultForms> results;
  // A predicate says more than eager PyTorch does: a write that it refuses keeps its form if it runs.
  bool fits = known && operandsFit(row, tensors);
  if (fits || (known && row.mutates)) results = resultForms(row, arguments);
  if (!(fits && results) && idle_ == 0) misfits_.insert(node);
  std::vector<Range> ranges;
  for (const Form& operand : operands) ranges.push_back(operand.operand.range);
  size_t elements =
      operands.empty() || !operands[0].known ? 0 : static_cast<size_t>(operands[0].operand.elements());
  Range range = resultRange(row.result, ranges, elements);
  if (row.mutates && !operands.empty()) return write(node, row, operands, results, range);

  bool list = node->outputs().size() == 1 && node->output()->type()->kind() == c10::TypeKind::ListType;
  std::vector<Form> made;
  for (size_t i = 0; results && i < results->tensors.size(); ++i) {
    made.push_back(result(row, operands, &results->tensors[i], results->list, range));
  }
  if (list) {
    Form form;
    form.kind = Form::Kind::List;
    form.known = results.has_value();
    form.elements = std::move(made);
    return set(node->output(), std::move(form));
  }
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    set(node->output(i), i < made.size() ? made[i] : result(row, operands, nullptr, false, range));
  }
}

Form FormReader::result(const OpRow& row, const std::vector<Form>& operands, const ResultForm* form,
                        bool sibling, const Range& range) {
  Form made;
  bool shares = !operands.empty() && (row.view || hasHazard(row, "same_object"));
  if (shares) made = operands[0];
  made.kind = Form::Kind::Tensor;
  made.known = form != nullptr;
  made.object = next_++;
  if (!shares) made.memory = made.object;
  if (!hasHazard(row, "same_object")) made.maybe_object = made.object;
  if (form != nullptr) {
    made.repeated = made.repeated || made.operand.elements() < c10::multiply_integers(form->sizes);
    made.operand.dtype = form->dtype;
    made.operand.sizes = form->sizes;
    made.operand.contiguous = form->contiguous;
  }
  if (!shares) made.repeated = false;
  bool gradient = std::any_of(operands.begin(), operands.end(),
                              [](const Form& operand) { return operand.operand.requires_grad; });
  gradient = gradient && gradientsMayBeOn() && row.differentiable;
  made.operand.requires_grad = gradient && !c10::isIntegralType(made.operand.dtype, /*includeBool=*/true);
  // A view is asked for its base's history, whatever the mode it was made under.
  // So is an argument that came back.
  if (shares && row.differentiable && operands[0].operand.requires_grad) {
    made.operand.requires_grad = true;
  }
  made.operand.range = range;
  made.sibling = made.sibling || (row.view && sibling);
  made.hidden_view = made.hidden_view || (row.view && gradients_ != true);
  if (row.view && !row.differentiable) {
    made.leaf = made.hidden_view = made.sibling = false;
    made.detached = true;
  }
  if (gradient && hasHazard(row, "saves_operand")) {
    for (const Form& operand : operands) saved_.insert(operand.memory);
  }
  if (gradient && hasHazard(row, "saves_result")) saved_.insert(made.memory);
  return made;
}

void FormReader::write(const Node* node, const OpRow& row, const std::vector<Form>& operands,
                       const std::optional<ResultForms>& results, const Range& range) {
  const Form target = operands[0];
  bool metadata = hasHazard(row, "metadata");
  bool gradient = std::any_of(operands.begin(), operands.end(),
                              [](const Form& operand) { return operand.operand.requires_grad; });
  gradient =
      gradient && gradientsMayBeOn() && !c10::isIntegralType(target.operand.dtype, /*includeBool=*/true);
  if (!metadata && saved_.count(target.memory) != 0 && idle_ == 0) spoils_.insert(node);
  for (auto& [value, form] : forms_) {
    if (!form.isTensor() || form.memory != target.memory) continue;
    if (gradient && !form.detached) form.operand.requires_grad = true;
    if (form.hidden_view && target.hidden_view) form.operand.usable = false;
    form.operand.range = joinRanges(form.operand.range, range);
    if (!metadata) continue;
    if (form.object == target.object && results) {
      form.operand.sizes = results->tensors[0].sizes;
      form.operand.contiguous = results->tensors[0].contiguous;
    } else if (form.maybe_object == target.maybe_object) {
      form.known = false;
    }
  }
  if (gradient && hasHazard(row, "saves_operand")) {
    for (size_t i = 1; i < operands.size(); ++i) saved_.insert(operands[i].memory);
  }
  if (gradient && hasHazard(row, "saves_result")) saved_.insert(target.memory);
  Form made = find(node->input(0));
  made.known = made.known && results.has_value();
  made.operand.range = range;
  set(node->output(), std::move(made));
}

}  // namespace faultline
