#include "engine/profile/object_builder.h"

#include <torch/csrc/jit/ir/constants.h>

#include "engine/support/check.h"
#include "engine/support/prefetch.h"

namespace faultline::profile {
namespace {

namespace aten = torch::jit::aten;
namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

// Container types nest as deep as their author likes; deeper than this they are not followed.
constexpr int kDeepestType = 16;

bool holdsTensors(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::NoneType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::DeviceObjType:
      return false;
    case c10::TypeKind::ListType:
      return holdsTensors(type->castRaw<c10::ListType>()->getElementType());
    default:
      return true;
  }
}

// Special-cased by libtorch and without effect on tensors or tensor results.
bool isHarmless(const Node* node) {
  switch (node->kind()) {
    case prim::Print:
    case prim::RaiseException:
    case prim::isinstance:
    case prim::AutogradAnyNonZero:
    case prim::AutogradAllNonZero:
    case prim::AutogradAllZero:
    case prim::BroadcastSizes:
    case prim::CreateObject:
    case prim::profile:
      return true;  // a counter: others are transparent
    default:
      return false;
  }
}

}  // namespace

bool isTensorLike(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return true;
  if (type->kind() != c10::TypeKind::OptionalType) return false;
  return type->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType;
}

ObjectBuilder::ObjectBuilder(Objects& objects, const FlowProgram& program, const GradModes& modes,
                             Reasons& reasons)
    : objects_(objects),
      program_(program),
      modes_(modes),
      reasons_(reasons),
      containers_(program, effects_),
      constants_object_(objects.objects_.fresh()),
      constants_group_(objects.groups_.fresh()) {}

void ObjectBuilder::run() {
  const ReasonId none = reasons_.of(ReasonKind::NoEvidence);
  const Block* top = program_.steps().back().place;
  for (const Value* input : top->inputs())
    bind(input, fromType(input->type(), input, -1, Origin::Outside, none));
  const int32_t count = static_cast<int32_t>(program_.steps().size());
  objects_.refs_.reserve(program_.steps().size());
  objects_.operands_.reserve(2 * program_.steps().size());
  objects_.roots_.reserve(program_.steps().size());
  objects_.first_operand_.reserve(program_.steps().size() + 1);
  for (int32_t i = 0; i < count; ++i) {
    const Step& step = program_.step(i);
    if (i + 2 * kAhead < count) prefetch(program_.step(i + 2 * kAhead).node);
    if (i + kAhead < count) prefetchValuesOf(program_.step(i + kAhead).node);
    objects_.first_operand_.push_back(static_cast<uint32_t>(objects_.operands_.size()));
    if (readsOperands(step.kind)) {
      for (const Value* input : step.node->inputs()) objects_.operands_.push_back(objects_.operand(input));
    }
    visit(i);
  }
  objects_.first_operand_.push_back(static_cast<uint32_t>(objects_.operands_.size()));
}

void ObjectBuilder::bind(const Value* value, Ref ref, int32_t feed) {
  if (ref.kind == RefKind::Other) return;
  const c10::Type& type = *value->type();
  const bool refined = type.kind() == c10::TypeKind::TensorType && &type != c10::TensorType::get().get();
  objects_.refs_.set(value, {ref, feed, refined});
}

int32_t ObjectBuilder::newRoot(const Value* value, int32_t step, ReasonId reason) {
  Root root;
  root.value = value;
  root.birth = step < 0 ? 0 : FlowProgram::after(step);
  root.control = step < 0 ? 0 : program_.step(step).control;
  root.reason = reason;
  root.object = objects_.objects_.fresh();
  root.group = objects_.groups_.fresh();
  objects_.roots_.push_back(std::move(root));
  return static_cast<int32_t>(objects_.roots_.size()) - 1;
}

Ref ObjectBuilder::aggregate(Aggregate aggregate) {
  objects_.aggregates_.push_back(std::move(aggregate));
  return {RefKind::Aggregate, static_cast<int32_t>(objects_.aggregates_.size()) - 1};
}

Ref ObjectBuilder::fromType(const c10::TypePtr& type, const Value* value, int32_t step, Origin origin,
                            ReasonId reason, int depth) {
  if (type->kind() == c10::TypeKind::NoneType) return {RefKind::Absent, -1};
  if (isTensorLike(type)) {
    const Ref ref{RefKind::Tensor, newRoot(value, step, reason)};
    if (origin == Origin::Outside) escape(ref);
    return ref;
  }
  if (depth > kDeepestType) return {};
  if (auto tuple = type->cast<c10::TupleType>()) {
    Aggregate result;
    result.complete = true;
    result.value = value;
    for (const c10::TypePtr& inner : tuple->elements()) {
      result.elements.push_back(fromType(inner, value, step, origin, reason, depth + 1));
    }
    return aggregate(std::move(result));
  }
  if (type->kind() == c10::TypeKind::ListType && holdsTensors(type)) {
    Aggregate result;
    result.list = true;
    result.reason = reason;
    result.value = value;
    result.birth = step < 0 ? 0 : FlowProgram::after(step);
    result.fresh_objects = origin == Origin::New;
    result.group = origin == Origin::New ? objects_.groups_.fresh() : Regions::kWildcard;
    return aggregate(std::move(result));
  }
  return {};
}

void ObjectBuilder::escape(Ref ref) {
  std::vector<Ref> stack = {ref};
  while (!stack.empty()) {
    const Ref next = stack.back();
    stack.pop_back();
    if (next.kind == RefKind::Tensor) {
      const Root& root = objects_.roots_[static_cast<size_t>(next.id)];
      objects_.objects_.escape(root.object);
      objects_.groups_.escape(root.group);
    } else if (next.kind == RefKind::Aggregate) {
      const Aggregate& inner = objects_.aggregates_[static_cast<size_t>(next.id)];
      stack.insert(stack.end(), inner.elements.begin(), inner.elements.end());
      objects_.groups_.escape(inner.group);
    }
  }
}

void ObjectBuilder::visit(int32_t index) {
  const Step& step = program_.step(index);
  switch (step.kind) {
    case StepKind::Node:
      visitNode(index);
      break;
    case StepKind::BlockBegin:
      beginBlock(index);
      break;
    case StepKind::BlockEnd:
      endBlock(index);
      break;
    case StepKind::Close:
      close(index);
      break;
    case StepKind::Call: {
      const Graph& subgraph = *step.node->g(attr::Subgraph);
      for (size_t i = 0; i < step.node->inputs().size(); ++i)
        bind(subgraph.inputs()[i], read(index, i).ref, read(index, i).feed);
      break;
    }
    case StepKind::CallEnd: {
      const Graph& subgraph = *step.node->g(attr::Subgraph);
      // A clone that a pass took along speaks on outside, of the same object.
      for (size_t i = 0; i < step.node->outputs().size(); ++i) {
        const ReadValue inside = objects_.operand(subgraph.outputs()[i]);
        bind(step.node->output(i), inside.ref, inside.feed);
      }
      break;
    }
    case StepKind::Open:
    case StepKind::Return:
    case StepKind::End:
      break;
  }
}

void ObjectBuilder::visitNode(int32_t index) {
  const Node* node = program_.step(index).node;
  if (program_.step(index).transparent) {
    const int32_t feed = program_.step(index).profile ? index : -1;
    for (size_t i = 0; i < node->outputs().size(); ++i) bind(node->output(i), read(index, i).ref, feed);
    return;
  }
  if (visitSpecial(index) || visitContainer(index)) return;
  // Most nodes of a graph only compute numbers.
  bool tensors = false;
  for (size_t i = 0; i < node->inputs().size(); ++i)
    tensors = tensors || read(index, i).ref.kind != RefKind::Other || holdsTensors(node->input(i)->type());
  for (const Value* output : node->outputs()) tensors = tensors || holdsTensors(output->type());
  if (tensors || callsOut(node)) visitGeneric(index);
}

bool ObjectBuilder::visitSpecial(int32_t index) {
  const Node* node = program_.step(index).node;
  const ReasonId none = reasons_.of(ReasonKind::NoEvidence);
  if (isHarmless(node) || setsGradMode(node)) {
    for (const Value* output : node->outputs())
      bind(output, fromType(output->type(), output, index, Origin::Outside, none));
    return true;
  }
  switch (node->kind()) {
    case prim::Constant:
      if (node->mustBeNone() || node->output()->type()->kind() == c10::TypeKind::NoneType) {
        bind(node->output(), {RefKind::Absent, -1});
      } else if (isTensorLike(node->output()->type())) {
        const int32_t root = newRoot(node->output(), index, none);
        objects_.objects_.include(objects_.roots_[static_cast<size_t>(root)].object, constants_object_);
        objects_.groups_.include(objects_.roots_[static_cast<size_t>(root)].group, constants_group_);
        bind(node->output(), {RefKind::Tensor, root});
      } else {
        bind(node->output(), fromType(node->output()->type(), node->output(), index, Origin::Outside, none));
      }
      return true;
    case prim::Uninitialized:
      bind(node->output(), {RefKind::Absent, -1});
      return true;
    case prim::unchecked_cast:
    case prim::unchecked_unwrap_optional:
    case aten::_unwrap_optional:
      if (get(node->input(0)).kind != RefKind::Other) {
        bind(node->output(), get(node->input(0)));
      } else {
        bind(node->output(), fromType(node->output()->type(), node->output(), index, Origin::Outside, none));
      }
      return true;
    case prim::Guard:
    case prim::TypeCheck:
    case prim::RequiresGradCheck:
      for (size_t i = 0; i < node->outputs().size() && i < node->inputs().size(); ++i) {
        bind(node->output(i), get(node->input(i)));
      }
      return true;
    case prim::AutogradZero:
      bind(node->output(), {RefKind::Tensor, newRoot(node->output(), index, none)});
      return true;
    case prim::AutogradAdd: {
      const int32_t id = newRoot(node->output(), index, none);
      for (const Value* input : node->inputs()) {
        const Ref ref = get(input);
        if (ref.kind == RefKind::Tensor)
          includeRegions(objects_.roots_[static_cast<size_t>(id)], {ref.id, 0, -1});
      }
      bind(node->output(), {RefKind::Tensor, id});
      return true;
    }
    case prim::MMTreeReduce:
    case prim::FusedConcat:
      for (const Value* output : node->outputs())
        bind(output, fromType(output->type(), output, index, Origin::New, none));
      return true;
    case prim::ConstantChunk:
      for (const Value* output : node->outputs()) visitResult(index, {ResultKind::View, 0}, output);
      return true;
    case prim::Enter:
    case prim::Exit: {
      // The managers of torch.autograd only set the mode; a user's own may do anything.
      const bool known = node->inputs().size() > 0 && node->input(0)->type()->cast<c10::ClassType>() &&
                         node->input(0)->type()->str().find("autograd") != std::string::npos;
      if (!known) visitOpaque(index);
      return true;
    }
    case prim::GetAttr:
      bind(node->output(), fromType(node->output()->type(), node->output(), index, Origin::Outside,
                                    reasons_.of(ReasonKind::Opaque, node)));
      return true;
    case prim::SetAttr:
      escape(get(node->input(1)));
      return true;
    default:
      return false;
  }
}

void ObjectBuilder::visitGeneric(int32_t index) {
  const Node* node = program_.step(index).node;
  const OpEffect& effect = effects_.of(node);
  if (effect.opaque) {
    visitOpaque(index);
    return;
  }
  for (const WriteEffect& write : effect.writes) recordWrite(index, write);
  for (uint16_t operand : effect.escapes) {
    if (operand < node->inputs().size()) escape(get(node->input(operand)));
  }
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    visitResult(index, i < effect.results.size() ? effect.results[i] : ResultEffect{}, node->output(i));
  }
}

void ObjectBuilder::visitResult(int32_t index, const ResultEffect& result, const Value* output) {
  const Node* node = program_.step(index).node;
  const ReasonId none = reasons_.of(ReasonKind::NoEvidence);
  const Ref from = result.operand < node->inputs().size() ? read(index, result.operand).ref : Ref{};
  const bool of_tensor = from.kind == RefKind::Tensor;
  const bool graded = modes_.at(index) == GradMode::On;
  switch (result.kind) {
    case ResultKind::Self:
      if (from.kind == RefKind::Other && holdsTensors(output->type())) break;
      bind(output, from);
      return;
    case ResultKind::Fresh:
    case ResultKind::Detached:
      bind(output, fromType(output->type(), output, index, Origin::New, none));
      return;
    case ResultKind::View:
    case ResultKind::MaybeSelf: {
      if (!of_tensor || !isTensorLike(output->type())) break;
      const int32_t id = newRoot(output, index, none);
      Root& root = objects_.roots_[static_cast<size_t>(id)];
      const Root& base = objects_.roots_[static_cast<size_t>(from.id)];
      root.view = true;
      if (result.kind == ResultKind::View) {
        root.group = base.group;
      } else {
        objects_.objects_.include(root.object, base.object);
        objects_.groups_.include(root.group, base.group);
      }
      if (!graded) objects_.ungraded_.push_back(root.group);
      bind(output, {RefKind::Tensor, id});
      return;
    }
    case ResultKind::Elements: {
      if (!of_tensor || output->type()->kind() != c10::TypeKind::ListType) break;
      Aggregate list;
      list.list = true;
      list.reason = none;
      list.value = output;
      list.birth = FlowProgram::after(index);
      list.fresh_objects = true;
      list.group = objects_.roots_[static_cast<size_t>(from.id)].group;
      if (!graded) objects_.ungraded_.push_back(list.group);
      if (!containers_.of(output).followable) objects_.groups_.escape(list.group);
      bind(output, aggregate(std::move(list)));
      return;
    }
    case ResultKind::Anything:
      break;
  }
  if (from.kind != RefKind::Other) escape(from);
  bind(output, fromType(output->type(), output, index, Origin::Outside, none));
}

void ObjectBuilder::visitOpaque(int32_t index) {
  const Node* node = program_.step(index).node;
  for (const Value* input : node->inputs()) escape(get(input));
  Write write;
  write.step = index;
  write.node = node;
  write.everything = write.identity = write.shape = write.lowers = true;
  objects_.writes_.push_back(std::move(write));
  const ReasonId reason = reasons_.of(ReasonKind::Opaque, node);
  for (const Value* output : node->outputs()) {
    bind(output, fromType(output->type(), output, index, Origin::Outside, reason));
  }
}

void ObjectBuilder::recordWrite(int32_t index, const WriteEffect& effect) {
  const Node* node = program_.step(index).node;
  if (effect.operand >= node->inputs().size()) return;
  const Ref target = get(node->input(effect.operand));
  if (target.kind == RefKind::Absent || target.kind == RefKind::Aggregate) return;
  Write write;
  write.step = index;
  write.node = node;
  write.root = target.kind == RefKind::Tensor ? target.id : -1;
  write.everything = target.kind != RefKind::Tensor;
  if (write.everything && !holdsTensors(node->input(effect.operand)->type())) return;
  write.identity = effect.identity;
  write.shape = effect.shape;
  write.keeps_rank = effect.keeps_rank;
  write.lowers = effect.gradient;
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    if (i == effect.operand) continue;
    const Value* input = node->input(i);
    const Ref ref = get(input);
    if (ref.kind == RefKind::Tensor) {
      write.brings_in.push_back(ref.id);
    } else if (ref.kind == RefKind::Aggregate) {
      // Lists of optional tensors are indices: integers and masks, which carry no gradient.
      auto list = input->type()->cast<c10::ListType>();
      if (list && list->getElementType()->kind() == c10::TypeKind::OptionalType) continue;
      const Aggregate& inner = objects_.aggregates_[static_cast<size_t>(ref.id)];
      for (const Ref& element : inner.elements) {
        write.brings_in.push_back(element.kind == RefKind::Tensor ? element.id : kUnfollowed);
      }
      if (!inner.complete) write.brings_in.push_back(kUnfollowed);
    }
  }
  objects_.writes_.push_back(std::move(write));
}

}  // namespace faultline::profile
