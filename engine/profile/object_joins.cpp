// Where control flow meets: results of If, values carried by Loop.
#include <torch/csrc/jit/ir/constants.h>

#include "engine/profile/evidence.h"
#include "engine/profile/object_builder.h"

namespace faultline::profile {
namespace {

namespace prim = torch::jit::prim;

bool isTensorOrAbsent(const Ref& ref) { return ref.kind == RefKind::Tensor || ref.kind == RefKind::Absent; }

}  // namespace

FlowOperand ObjectBuilder::operand(Ref ref, Pos at, int32_t arm) const {
  if (ref.kind == RefKind::Tensor) return {ref.id, at, arm};
  return {ref.kind == RefKind::Absent ? kAbsent : kUnfollowed, at, arm};
}

void ObjectBuilder::includeRegions(Root& root, const FlowOperand& operand) {
  if (operand.root == kAbsent) return;
  if (operand.root == kUnfollowed) {
    objects_.objects_.escape(root.object);
    objects_.groups_.escape(root.group);
    return;
  }
  const Root& part = objects_.roots_[static_cast<size_t>(operand.root)];
  objects_.objects_.include(root.object, part.object);
  objects_.groups_.include(root.group, part.group);
}

Ref ObjectBuilder::ifResult(const std::vector<Ref>& refs, const std::vector<int32_t>& arms,
                            const c10::TypePtr& type, const Value* value, int32_t close) {
  bool same = true;
  bool tensors = isTensorLike(type) || type->kind() == c10::TypeKind::NoneType;
  for (const Ref& ref : refs) {
    same = same && ref == refs[0];
    tensors = tensors && isTensorOrAbsent(ref);
  }
  if (same && (refs[0].kind == RefKind::Absent || refs[0].kind == RefKind::Tensor)) return refs[0];
  if (tensors) {
    const int32_t id = newRoot(value, close, reasons_.of(ReasonKind::ArmUnknown, program_.step(close).node));
    Root& root = objects_.roots_[static_cast<size_t>(id)];
    root.kind = RootKind::IfResult;
    for (size_t i = 0; i < refs.size(); ++i) {
      root.operands.push_back(operand(refs[i], FlowProgram::before(program_.control(arms[i]).end), arms[i]));
      includeRegions(root, root.operands.back());
    }
    return {RefKind::Tensor, id};
  }
  // Containers of one shape are joined element by element.
  bool alike = true;
  size_t count = 0;
  for (size_t i = 0; i < refs.size() && alike; ++i) {
    alike = refs[i].kind == RefKind::Aggregate;
    if (!alike) break;
    const Aggregate& part = objects_.aggregates_[static_cast<size_t>(refs[i].id)];
    if (i == 0) count = part.elements.size();
    alike = part.complete && part.keys.empty() && part.elements.size() == count;
  }
  if (alike) {
    Aggregate result;
    result.list = objects_.aggregates_[static_cast<size_t>(refs[0].id)].list;
    result.complete = true;
    result.value = value;
    auto tuple = type->cast<c10::TupleType>();
    auto list = type->cast<c10::ListType>();
    for (size_t k = 0; k < count; ++k) {
      std::vector<Ref> parts;
      for (const Ref& ref : refs)
        parts.push_back(objects_.aggregates_[static_cast<size_t>(ref.id)].elements[k]);
      c10::TypePtr inner = c10::AnyType::get();
      if (tuple && k < tuple->elements().size()) inner = tuple->elements()[k];
      if (list) inner = list->getElementType();
      result.elements.push_back(ifResult(parts, arms, inner, value, close));
    }
    return aggregate(std::move(result));
  }
  for (const Ref& ref : refs) escape(ref);
  return fromType(type, value, close, Origin::Outside, reasons_.of(ReasonKind::Container));
}

// A body that returns what it was given, however it looked at it or wrote it, carries one object through.
bool ObjectBuilder::carriedUnchanged(const Value* returned, const Value* param) {
  while ((returned = program_.behindBoundaries(returned)) != param) {
    const Node* node = returned->node();
    if (isTransparent(node) || node->kind() == prim::unchecked_cast) {
      returned = node->input(returned->offset());
      continue;
    }
    if (node->kind() == prim::Param || !node->blocks().empty() || runsSubgraphInPlace(node)) return false;
    const OpEffect& effect = effects_.of(node);
    const size_t output = returned->offset();
    if (effect.opaque || output >= effect.results.size() || effect.results[output].kind != ResultKind::Self)
      return false;
    returned = node->input(effect.results[output].operand);
  }
  return true;
}

Ref ObjectBuilder::carried(Ref initial, const Value* param, int32_t begin, int32_t open,
                           const c10::TypePtr& type) {
  if (isTensorLike(type) && isTensorOrAbsent(initial)) {
    const int32_t id = newRoot(param, begin, reasons_.of(ReasonKind::ArmUnknown, program_.step(open).node));
    Root& root = objects_.roots_[static_cast<size_t>(id)];
    root.kind = RootKind::LoopCarried;
    root.operands.push_back(operand(initial, FlowProgram::before(open), -1));
    includeRegions(root, root.operands.back());
    return {RefKind::Tensor, id};
  }
  auto tuple = type->cast<c10::TupleType>();
  if (tuple && initial.kind == RefKind::Aggregate) {
    const Aggregate first = objects_.aggregates_[static_cast<size_t>(initial.id)];
    if (first.complete && first.elements.size() == tuple->elements().size()) {
      Aggregate result;
      result.complete = true;
      result.value = param;
      for (size_t k = 0; k < first.elements.size(); ++k) {
        result.elements.push_back(carried(first.elements[k], param, begin, open, tuple->elements()[k]));
      }
      return aggregate(std::move(result));
    }
  }
  escape(initial);
  return fromType(type, param, begin, Origin::Outside, reasons_.of(ReasonKind::Container));
}

void ObjectBuilder::addBack(Ref carried, Ref returned, int32_t end) {
  if (carried.kind == RefKind::Tensor) {
    Root& root = objects_.roots_[static_cast<size_t>(carried.id)];
    if (root.kind != RootKind::LoopCarried) {
      escape(returned);
      return;
    }
    root.operands.push_back(operand(returned, FlowProgram::before(end), program_.step(end).control));
    includeRegions(root, root.operands.back());
  } else if (carried.kind == RefKind::Aggregate) {
    const Aggregate into = objects_.aggregates_[static_cast<size_t>(carried.id)];
    const Aggregate* from = returned.kind == RefKind::Aggregate
                                ? &objects_.aggregates_[static_cast<size_t>(returned.id)]
                                : nullptr;
    const bool alike =
        from != nullptr && from->complete && into.complete && from->elements.size() == into.elements.size();
    const std::vector<Ref> parts = alike ? from->elements : std::vector<Ref>(into.elements.size());
    if (!alike) escape(returned);
    for (size_t k = 0; k < into.elements.size(); ++k) addBack(into.elements[k], parts[k], end);
  } else {
    escape(returned);
  }
}

Ref ObjectBuilder::loopResult(Ref initial, Ref returned, const Value* output, int32_t close, int32_t body) {
  const Control& control = program_.control(body);
  if (isTensorLike(output->type()) && isTensorOrAbsent(initial) && isTensorOrAbsent(returned)) {
    if (initial == returned && initial.kind == RefKind::Tensor) return initial;
    const int32_t id = newRoot(output, close, reasons_.of(ReasonKind::ArmUnknown, program_.step(close).node));
    Root& root = objects_.roots_[static_cast<size_t>(id)];
    root.kind = RootKind::LoopResult;
    root.operands.push_back(operand(initial, FlowProgram::before(control.open), -1));
    root.operands.push_back(operand(returned, FlowProgram::before(control.end), body));
    for (const FlowOperand& part : root.operands) includeRegions(root, part);
    return {RefKind::Tensor, id};
  }
  if (initial.kind == RefKind::Aggregate && returned.kind == RefKind::Aggregate) {
    const Aggregate first = objects_.aggregates_[static_cast<size_t>(initial.id)];
    const Aggregate last = objects_.aggregates_[static_cast<size_t>(returned.id)];
    auto tuple = output->type()->cast<c10::TupleType>();
    if (tuple && first.complete && last.complete && first.elements.size() == last.elements.size()) {
      Aggregate result;
      result.complete = true;
      result.value = output;
      for (size_t k = 0; k < first.elements.size(); ++k) {
        const Ref a = first.elements[k];
        const Ref b = last.elements[k];
        if (isTensorOrAbsent(a) && isTensorOrAbsent(b)) {
          if (a == b) {
            result.elements.push_back(a);
            continue;
          }
          const int32_t id =
              newRoot(output, close, reasons_.of(ReasonKind::ArmUnknown, program_.step(close).node));
          Root& root = objects_.roots_[static_cast<size_t>(id)];
          root.kind = RootKind::LoopResult;
          root.operands.push_back(operand(a, FlowProgram::before(control.open), -1));
          root.operands.push_back(operand(b, FlowProgram::before(control.end), body));
          for (const FlowOperand& part : root.operands) includeRegions(root, part);
          result.elements.push_back({RefKind::Tensor, id});
        } else {
          escape(a);
          escape(b);
          result.elements.push_back(fromType(tuple->elements()[k], output, close, Origin::Outside,
                                             reasons_.of(ReasonKind::Container)));
        }
      }
      return aggregate(std::move(result));
    }
  }
  escape(initial);
  escape(returned);
  return fromType(output->type(), output, close, Origin::Outside, reasons_.of(ReasonKind::Container));
}

void ObjectBuilder::beginBlock(int32_t index) {
  const Step& step = program_.step(index);
  const Control& control = program_.control(step.match);
  const Node* owner = step.node;
  const auto params = step.place->inputs();
  if (owner->kind() != prim::Loop) {
    for (const Value* param : params) {
      bind(param,
           fromType(param->type(), param, index, Origin::Outside, reasons_.of(ReasonKind::NoEvidence)));
    }
    return;
  }
  const auto returned = step.place->outputs();
  for (size_t k = 1; k < params.size() && k + 1 < owner->inputs().size() && k < returned.size(); ++k) {
    const Ref initial = get(owner->input(k + 1));
    if (initial.kind == RefKind::Other) continue;
    if (initial.kind == RefKind::Tensor && carriedUnchanged(returned[k], params[k])) {
      bind(params[k], initial);
    } else {
      bind(params[k], carried(initial, params[k], index, control.open, params[k]->type()));
    }
  }
}

void ObjectBuilder::endBlock(int32_t index) {
  const Step& step = program_.step(index);
  if (program_.control(step.match).kind != ControlKind::Body) return;
  const auto params = step.place->inputs();
  const auto returned = step.place->outputs();
  for (size_t k = 1; k < params.size() && k < returned.size(); ++k) {
    const Ref into = get(params[k]);
    const Ref from = get(returned[k]);
    if (into.kind == RefKind::Other || into == from) continue;
    addBack(into, from, index);
  }
}

void ObjectBuilder::close(int32_t index) {
  const Step& step = program_.step(index);
  const Node* node = step.node;
  const std::vector<int32_t> blocks = program_.blocksOf(step.match);
  if (node->kind() == prim::If) {
    for (size_t k = 0; k < node->outputs().size(); ++k) {
      std::vector<Ref> refs;
      bool other = false;
      for (const Block* block : node->blocks()) {
        refs.push_back(k < block->outputs().size() ? get(block->outputs()[k]) : Ref{});
        other = other || refs.back().kind != RefKind::Other;
      }
      if (other)
        bind(node->output(k), ifResult(refs, blocks, node->output(k)->type(), node->output(k), index));
    }
  } else if (node->kind() == prim::Loop) {
    const auto returned = node->blocks()[0]->outputs();
    for (size_t k = 0; k < node->outputs().size() && k + 2 < node->inputs().size() && k + 1 < returned.size();
         ++k) {
      const Ref initial = get(node->input(k + 2));
      const Ref last = get(returned[k + 1]);
      if (initial.kind == RefKind::Other && last.kind == RefKind::Other) continue;
      bind(node->output(k), loopResult(initial, last, node->output(k), index, blocks[0]));
    }
  } else {
    // Blocks of unknown use: what they return may come out, and the node may do more than its blocks.
    for (const Block* block : node->blocks()) {
      for (const Value* value : block->outputs()) escape(get(value));
    }
    if (node->kind() != prim::GradOf) {
      visitOpaque(index);
      return;
    }
    const ReasonId reason = reasons_.of(ReasonKind::Opaque, node);
    for (const Value* output : node->outputs()) {
      bind(output, fromType(output->type(), output, index, Origin::Outside, reason));
    }
  }
}

}  // namespace faultline::profile
