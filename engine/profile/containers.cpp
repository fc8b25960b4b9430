#include "engine/profile/containers.h"

#include "engine/profile/evidence.h"

namespace faultline::profile {
namespace {

namespace aten = torch::jit::aten;
namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

bool isContainerType(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::ListType || type->kind() == c10::TypeKind::DictType;
}

bool writesOperand(const OpEffect& effect, size_t operand) {
  for (const WriteEffect& write : effect.writes) {
    if (write.operand == operand) return true;
  }
  return false;
}

bool mayWriteOutside(const Node* node, Effects& effects) {
  switch (node->kind()) {
    case prim::CallFunction:
    case prim::CallMethod:
    case prim::fork:
      return true;
    default:
      break;
  }
  const OpEffect& effect = effects.of(node);
  if (effect.opaque) return !node->kind().is_prim();
  for (const WriteEffect& write : effect.writes) {
    if (isContainerType(node->input(write.operand)->type())) return true;
  }
  return false;
}

}  // namespace

ContainerUse Containers::of(const Value* container) {
  if (auto it = known_.find(container); it != known_.end()) return it->second;
  ContainerUse result;
  std::vector<const Value*> stack = {container};
  std::unordered_set<const Value*> seen = {container};
  auto follow = [&](const Value* value) {
    if (seen.insert(value).second) stack.push_back(value);
  };
  while (!stack.empty() && result.followable) {
    const Value* value = stack.back();
    stack.pop_back();
    for (const torch::jit::Use& use : value->uses()) {
      const Node* user = use.user;
      const int32_t index = program_.stepOf(user);
      if (index < 0) {
        result.followable = false;
        break;
      }
      const Step& step = program_.step(index);
      if (step.kind == StepKind::End) continue;
      if (step.kind == StepKind::Call) {
        follow(user->g(attr::Subgraph)->inputs()[use.offset]);
        continue;
      }
      if (step.kind == StepKind::Return) {
        const Node* call = program_.step(index + 1).node;
        if (use.offset < call->outputs().size()) follow(call->outputs()[use.offset]);
        continue;
      }
      if (step.kind == StepKind::BlockEnd) {
        const Control& control = program_.control(step.match);
        if (control.kind == ControlKind::Arm) {
          follow(program_.step(control.open).node->outputs()[use.offset]);
          continue;
        }
        result.followable = false;
        break;
      }
      if (user->kind() == prim::ListUnpack || isProfileIValue(user)) {
        if (isProfileIValue(user)) follow(user->output(use.offset));
        continue;
      }
      if (user->kind() == aten::__getitem__ && use.offset == 0) continue;
      const OpEffect& effect = effects_.of(user);
      if (effect.opaque || use.offset >= effect.reads_list.size() || !effect.reads_list[use.offset]) {
        result.followable = false;
        if (!effect.opaque && writesOperand(effect, use.offset)) result.writer = user;
        // A later use may be the write, which is the better reason.
        if (result.writer != nullptr) break;
      }
    }
  }
  known_[container] = result;
  return result;
}

const Node* Containers::outsideWriter() {
  if (searched_) return outside_writer_;
  searched_ = true;
  for (const Step& step : program_.steps()) {
    if (step.kind != StepKind::Node || step.node->inputs().empty()) continue;
    if (mayWriteOutside(step.node, effects_)) {
      outside_writer_ = step.node;
      break;
    }
  }
  return outside_writer_;
}

}  // namespace faultline::profile
