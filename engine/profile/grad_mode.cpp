#include "engine/profile/grad_mode.h"

#include <string_view>

#include <torch/csrc/jit/ir/constants.h>

namespace faultline::profile {
namespace {

namespace aten = torch::jit::aten;
namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

c10::Symbol setGradEnabled() {
  static const c10::Symbol symbol = c10::Symbol::fromQualString("aten::set_grad_enabled");
  return symbol;
}
c10::Symbol isGradEnabled() {
  static const c10::Symbol symbol = c10::Symbol::fromQualString("aten::is_grad_enabled");
  return symbol;
}

// The last part of the class name of a context manager: "no_grad", "enable_grad", …; empty for anything else.
std::string managerName(const Value* context) {
  auto type = context->type()->cast<c10::ClassType>();
  if (!type || !type->name()) return {};
  const std::string prefix = type->name()->prefix();
  const bool autograd =
      prefix.find("autograd") != std::string::npos || prefix.find("inference") != std::string::npos;
  return autograd ? type->name()->name() : std::string();
}

GradMode join(GradMode a, GradMode b) { return a == b ? a : GradMode::Unknown; }

}  // namespace

bool setsGradMode(const Node* node) { return node->kind() == setGradEnabled(); }

bool callsOut(const Node* node) {
  switch (node->kind()) {
    case prim::CallFunction:
    case prim::CallMethod:
    case prim::fork:
    case prim::awaitable:
    case prim::BailOut:
      return true;
    default:
      return false;
  }
}

bool mayChangeGradMode(const Node* node) {
  return node->kind() == prim::Enter || node->kind() == prim::Exit || setsGradMode(node) || callsOut(node);
}

GradModes::GradModes(const FlowProgram& program, GradMode caller) : caller_(caller) {
  if (program.changesGradMode()) walk(program);
}

// The mode that a bool stands for: a constant, or a mode that was saved earlier.
GradMode GradModes::modeNamedBy(const FlowProgram& program, const Value* flag) const {
  flag = program.behindBoundaries(flag);
  if (auto constant = torch::jit::constant_as<bool>(const_cast<Value*>(flag))) {
    return *constant ? GradMode::On : GradMode::Off;
  }
  const Node* maker = flag->node();
  if (maker->kind() == prim::GetAttr && maker->inputs().size() == 1) {
    // `with no_grad()`, inlined: __enter__ saves the mode in an attribute, __exit__ restores it.
    const Value* saved = nullptr;
    for (const torch::jit::Use& use : maker->input(0)->uses()) {
      if (use.user->kind() != prim::SetAttr || use.offset != 0) continue;
      if (use.user->s(attr::name) != maker->s(attr::name)) continue;
      if (saved != nullptr) return GradMode::Unknown;
      saved = use.user->input(1);
    }
    if (saved == nullptr) return GradMode::Unknown;
    maker = program.behindBoundaries(saved)->node();
  }
  if (maker->kind() != isGradEnabled()) return GradMode::Unknown;
  const int32_t step = program.stepOf(maker);
  return step < 0 ? GradMode::Unknown : at(step);
}

GradMode GradModes::afterNode(const FlowProgram& program, const Node* node, GradMode mode) {
  if (setsGradMode(node)) return modeNamedBy(program, node->input(0));
  if (callsOut(node)) return GradMode::Unknown;  // it may leave any mode behind
  if (node->kind() == prim::Enter) {
    const std::string name = managerName(node->input(0));
    if (name == "no_grad" || name == "inference_mode") return GradMode::Off;
    if (name == "enable_grad") return GradMode::On;
    return GradMode::Unknown;
  }
  if (node->kind() == prim::Exit) {
    // Back to what it was where the same manager was entered.
    if (managerName(node->input(0)).empty()) return GradMode::Unknown;
    const Node* enter = nullptr;
    for (const torch::jit::Use& use : node->input(0)->uses()) {
      if (use.user->kind() != prim::Enter) continue;
      if (enter != nullptr) return GradMode::Unknown;
      enter = use.user;
    }
    const int32_t step = enter == nullptr ? -1 : program.stepOf(enter);
    return step < 0 ? GradMode::Unknown : at(step);
  }
  return mode;
}

void GradModes::walk(const FlowProgram& program) {
  const std::vector<Step>& steps = program.steps();
  modes_.assign(steps.size(), caller_);
  std::vector<GradMode> entry(program.controls().size(), caller_);  // at the begin of each control block
  std::vector<GradMode> leaving(program.controls().size(), caller_);
  std::vector<bool> unstable(program.controls().size(),
                             false);  // loop bodies whose end differs from their begin
  GradMode mode = caller_;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    modes_[i] = mode;
    switch (step.kind) {
      case StepKind::Node:
        mode = afterNode(program, step.node, mode);
        break;
      case StepKind::BlockBegin: {
        const Control& control = program.control(step.match);
        mode = modes_[static_cast<size_t>(control.open)];
        if (unstable[static_cast<size_t>(step.match)]) mode = GradMode::Unknown;
        entry[static_cast<size_t>(step.match)] = mode;
        modes_[i] = mode;
        break;
      }
      case StepKind::BlockEnd: {
        const size_t index = static_cast<size_t>(step.match);
        const Control& control = program.control(step.match);
        leaving[index] = mode;
        const bool repeats = control.kind != ControlKind::Arm;
        if (repeats && mode != entry[index] && entry[index] != GradMode::Unknown) {
          // The body does not keep the mode it found: the next trip finds another. Once known, for ever.
          unstable[index] = true;
          i = static_cast<size_t>(control.begin) - 1;
        }
        break;
      }
      case StepKind::Close: {
        const std::vector<int32_t> blocks = program.blocksOf(step.match);
        const bool arms = program.control(blocks[0]).kind == ControlKind::Arm;
        mode = arms ? leaving[static_cast<size_t>(blocks[0])] : modes_[static_cast<size_t>(step.match)];
        for (int32_t block : blocks) mode = join(mode, leaving[static_cast<size_t>(block)]);
        modes_[i] = mode;
        break;
      }
      default:
        break;
    }
  }
}

}  // namespace faultline::profile
