// Tuples, lists and dicts that are built and taken apart.
#include <torch/csrc/jit/ir/constants.h>

#include "engine/profile/object_builder.h"

namespace faultline::profile {
namespace {

namespace aten = torch::jit::aten;
namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

// A key or index as text, empty when it is not a constant.
std::string constantKey(const Value* value) {
  const auto constant = torch::jit::toIValue(value);
  if (!constant) return {};
  if (constant->isInt()) return "i" + std::to_string(constant->toInt());
  if (constant->isString()) return "s" + constant->toStringRef();
  return {};
}

}  // namespace

// An element of a container that is only partly known, as a root of its own.
Ref ObjectBuilder::looseElement(const Value* value, int32_t step, Ref container) {
  const Aggregate& from = objects_.aggregates_[static_cast<size_t>(container.id)];
  const RegionId group = from.group;
  const bool fresh = from.fresh_objects;
  const ReasonId reason = from.reason;
  const bool followable = containers_.of(from.value).followable;
  const Pos birth = from.birth;
  const Ref ref{RefKind::Tensor, newRoot(value, step, reason)};
  Root& root = objects_.roots_[static_cast<size_t>(ref.id)];
  if (!fresh || !followable) {
    escape(ref);
    return ref;
  }
  // The object is as old as the list it came in.
  root.birth = birth;
  root.view = group != Regions::kWildcard;
  root.group = group;
  return ref;
}

Ref ObjectBuilder::element(Ref container, size_t index, const c10::TypePtr& type, const Value* value,
                           int32_t step) {
  const Aggregate known = objects_.aggregates_[static_cast<size_t>(container.id)];
  if (index < known.elements.size() && known.elements[index].kind != RefKind::Other)
    return known.elements[index];
  if (known.complete) return {};
  if (type->kind() != c10::TypeKind::TensorType) {
    return fromType(type, value, step, Origin::Outside, known.reason);
  }
  const bool outside = !known.fresh_objects;
  const bool stable =
      containers_.of(known.value).followable && (!outside || containers_.outsideWriter() == nullptr);
  const Ref ref = looseElement(value, step, container);
  if (!stable) {
    Root& root = objects_.roots_[static_cast<size_t>(ref.id)];
    const Node* writer = containers_.of(known.value).writer;
    if (writer == nullptr && outside) writer = containers_.outsideWriter();
    root.reason = writer ? reasons_.of(ReasonKind::ListWritten, writer) : known.reason;
    return ref;
  }
  // Taken twice from a list that nobody writes, it is the same object.
  objects_.roots_[static_cast<size_t>(ref.id)].birth = known.birth;
  auto& elements = objects_.aggregates_[static_cast<size_t>(container.id)].elements;
  if (elements.size() <= index) elements.resize(index + 1);
  elements[index] = ref;
  return ref;
}

bool ObjectBuilder::visitContainer(int32_t index) {
  const Node* node = program_.step(index).node;
  const ReasonId untracked = reasons_.of(ReasonKind::Container);
  switch (node->kind()) {
    case prim::TupleConstruct: {
      Aggregate tuple;
      tuple.complete = true;
      tuple.value = node->output();
      for (const Value* input : node->inputs()) tuple.elements.push_back(get(input));
      bind(node->output(), aggregate(std::move(tuple)));
      return true;
    }
    case prim::TupleUnpack:
    case prim::ListUnpack: {
      const Ref container = get(node->input(0));
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        const Value* output = node->output(i);
        if (container.kind == RefKind::Aggregate) {
          bind(output, element(container, i, output->type(), output, index));
        } else {
          bind(output, fromType(output->type(), output, index, Origin::Outside, untracked));
        }
      }
      return true;
    }
    case prim::TupleIndex: {
      const Ref container = get(node->input(0));
      const auto at = torch::jit::constant_as<int64_t>(const_cast<Value*>(node->input(1)));
      if (container.kind == RefKind::Aggregate && at) {
        const int64_t count =
            static_cast<int64_t>(objects_.aggregates_[static_cast<size_t>(container.id)].elements.size());
        const int64_t i = *at < 0 ? *at + count : *at;
        if (i >= 0 && i < count) {
          bind(node->output(),
               element(container, static_cast<size_t>(i), node->output()->type(), node->output(), index));
          return true;
        }
      }
      escape(container);
      bind(node->output(),
           fromType(node->output()->type(), node->output(), index, Origin::Outside, untracked));
      return true;
    }
    case prim::TupleSlice: {
      const Ref container = get(node->input(0));
      if (container.kind == RefKind::Aggregate) {
        const Aggregate whole = objects_.aggregates_[static_cast<size_t>(container.id)];
        const int64_t count = static_cast<int64_t>(whole.elements.size());
        const int64_t begin = node->i(attr::beg);
        const int64_t end = node->i(attr::end);
        if (begin >= 0 && begin <= end && end <= count) {
          Aggregate slice;
          slice.complete = whole.complete;
          slice.value = node->output();
          slice.elements.assign(whole.elements.begin() + begin, whole.elements.begin() + end);
          bind(node->output(), aggregate(std::move(slice)));
          return true;
        }
      }
      escape(container);
      bind(node->output(),
           fromType(node->output()->type(), node->output(), index, Origin::Outside, untracked));
      return true;
    }
    case prim::ListConstruct:
    case prim::DictConstruct: {
      const bool dict = node->kind() == prim::DictConstruct;
      bool any = false;
      for (const Value* input : node->inputs()) any = any || get(input).kind != RefKind::Other;
      if (!any && !dict && node->inputs().size() > 0) return true;  // numbers
      const ContainerUse use = containers_.of(node->output());
      Aggregate result;
      result.list = true;
      result.value = node->output();
      result.birth = FlowProgram::after(index);
      result.complete = use.followable;
      result.reason = use.writer ? reasons_.of(ReasonKind::ListWritten, use.writer) : untracked;
      if (use.followable) {
        for (size_t i = dict ? 1 : 0; i < node->inputs().size(); i += dict ? 2 : 1) {
          result.elements.push_back(get(node->input(i)));
          if (dict) result.keys.push_back(constantKey(node->input(i - 1)));
        }
      } else {
        for (const Value* input : node->inputs()) escape(get(input));
      }
      bind(node->output(), aggregate(std::move(result)));
      return true;
    }
    case aten::__getitem__: {
      const Ref container = get(node->input(0));
      if (container.kind != RefKind::Aggregate) return false;
      const Aggregate known = objects_.aggregates_[static_cast<size_t>(container.id)];
      const std::string key = constantKey(node->input(1));
      size_t at = known.elements.size();
      bool certain = !key.empty() && known.list;
      if (!known.keys.empty()) {
        // A later entry of the same key replaced the earlier one; one key that is not constant may be any.
        for (size_t i = 0; i < known.keys.size(); ++i) {
          certain = certain && !known.keys[i].empty();
          if (known.keys[i] == key) at = i;
        }
        certain = certain && at < known.elements.size();
      } else if (certain && key[0] == 'i') {
        const int64_t i = std::stoll(key.substr(1));
        const int64_t wrapped = i < 0 && known.complete ? i + static_cast<int64_t>(known.elements.size()) : i;
        // Without its length a list counted from the end may be anything.
        certain = wrapped >= 0 && wrapped < 4096 &&
                  (!known.complete || wrapped < static_cast<int64_t>(known.elements.size()));
        at = certain ? static_cast<size_t>(wrapped) : at;
      } else {
        certain = false;
      }
      if (certain) {
        bind(node->output(), element(container, at, node->output()->type(), node->output(), index));
      } else {
        escape(container);
        bind(node->output(),
             fromType(node->output()->type(), node->output(), index, Origin::Outside, untracked));
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace faultline::profile
