#include "engine/runtime/runnable_part.h"

#include <algorithm>

#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/ir/constants.h>

#include "engine/autodiff/differentiability.h"
#include "engine/ir/interpretable.h"
#include "engine/support/check.h"

namespace faultline {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

// A program that keeps changing which inputs require grad is run as written rather than compiled without end.
constexpr size_t max_variants = 16;

struct RunnablePart::Slot {
  InputMask requires_grad;
  std::shared_ptr<const PartVariant> variant;  // nullptr: autodiff refused
  Slot* next;
  size_t count;
};

namespace {

bool autocastIsOff() {
  return c10::impl::tls_local_dispatch_key_set().excluded_.has_all(c10::autocast_dispatch_keyset);
}

// A view made without grad mode refuses later writes to itself or its base. The plain tensor shares storage
// and version counter with it, so that writes that matter are still noticed.
at::Tensor withoutViewRecord(const at::Tensor& tensor) {
  return tensor.is_view() ? tensor.tensor_data() : tensor;
}

// As large as `tensor` to look at, without its memory.
at::Tensor standIn(const at::Tensor& tensor) {
  at::NoGradGuard no_grad;
  return at::empty({}, tensor.options()).expand(tensor.sizes());
}

void save(PieceNode& node, const c10::IValue& value, bool metadata_only, bool made_here) {
  if (!value.isTensor() || !value.toTensor().defined()) {
    node.saveOther(value);
    return;
  }
  const at::Tensor& tensor = value.toTensor();
  if (metadata_only) {
    const bool lives_anyway = tensor.is_leaf() && tensor.requires_grad();
    node.saveOther(lives_anyway ? tensor : standIn(tensor));
    return;
  }
  // An output is kept without its node, which is the one that keeps it.
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  const bool is_output = meta && meta->grad_fn_.get() == &node;
  node.saveTensor(made_here && !is_output ? withoutViewRecord(tensor) : tensor, is_output);
}

bool sameObject(const c10::IValue& a, const c10::IValue& b) {
  return a.isTensor() && b.isTensor() && a.toTensor().defined() && a.toTensor().is_same(b.toTensor());
}

}  // namespace

RunnablePart::RunnablePart(std::shared_ptr<Graph> graph, bool compile, const InputMask& expected, Guard guard,
                           const InputMask& open)
    : graph_(std::move(graph)), expected_(expected), open_(open), guard_(guard), compiled_(compile) {
  for (size_t i = 0; i < graph_->inputs().size(); ++i) {
    if (graph_->inputs()[i]->type()->kind() == c10::TypeKind::TensorType) {
      tensor_inputs_.push_back(i);
    }
  }
  for (const Node* node : graph_->nodes()) {
    may_pass_through_ = may_pass_through_ || passesStorage(node);
    if (node->kind() == torch::jit::prim::Constant &&
        node->output()->type()->kind() == c10::TypeKind::TensorType) {
      auto constant = torch::jit::toIValue(node->output());
      if (constant && constant->isTensor() && constant->toTensor().defined()) {
        constant_dtypes_.push_back(constant->toTensor().scalar_type());
      }
    }
  }
  if (compiled_ && anyOf(expected_)) {
    expected_variant_ = variantFor(expected_);
    compiled_ = expected_variant_ != nullptr;
  }
  if (!compiled_) {
    plain();
  }
}

const torch::jit::Code& RunnablePart::plain() const {
  std::call_once(plain_made_, [this] { plain_.emplace(interpretable(graph_), "piece"); });
  return *plain_;
}

RunnablePart::~RunnablePart() {
  for (Slot* slot = slots_; slot;) {
    Slot* next = slot->next;
    delete slot;
    slot = next;
  }
}

std::shared_ptr<const PartVariant> RunnablePart::variantFor(const InputMask& requires_grad) const {
  auto find = [&]() -> const Slot* {
    for (const Slot* slot = slots_.load(std::memory_order_acquire); slot; slot = slot->next) {
      if (slot->requires_grad == requires_grad) {
        return slot;
      }
    }
    return nullptr;
  };
  if (const Slot* slot = find()) {
    return slot->variant;
  }
  std::lock_guard<std::mutex> lock(adding_);
  if (const Slot* slot = find()) {
    return slot->variant;
  }
  Slot* first = slots_.load(std::memory_order_relaxed);
  if (first && first->count >= max_variants) {
    return nullptr;
  }
  auto gradient = differentiatePiece(*graph_, requires_grad);
  auto* slot = new Slot{requires_grad, nullptr, first, first ? first->count + 1 : 1};
  if (gradient) {
    slot->variant = std::make_shared<PartVariant>(std::move(*gradient));
  } else if (reason_.empty() && requires_grad == expected_) {
    // Only the constructor gets here with `expected_`: nobody reads the reason yet.
    const_cast<std::string&>(reason_) = gradient.error().message;
  }
  slots_.store(slot, std::memory_order_release);
  return slot->variant;
}

bool RunnablePart::fitsFormulas(const Stack& inputs) const {
  std::optional<at::ScalarType> dtype;
  bool has_integers = false;
  auto agrees = [&](at::ScalarType type) {
    if (c10::isIntegralType(type, /*includeBool=*/true)) {
      has_integers = true;
      return true;
    }
    if (type != at::kFloat && type != at::kDouble) {
      return false;
    }
    if (!dtype) {
      dtype = type;
    }
    return *dtype == type;
  };
  for (size_t i : tensor_inputs_) {
    if (!inputs[i].isTensor()) {
      return false;
    }
    const at::Tensor& tensor = inputs[i].toTensor();
    if (!isFitInput(tensor) || !agrees(tensor.scalar_type())) {
      return false;
    }
  }
  for (at::ScalarType type : constant_dtypes_) {
    if (!agrees(type)) {
      return false;
    }
  }
  // Integers divided give the default dtype, whatever the floating inputs have.
  return dtype && (!has_integers || c10::typeMetaToScalarType(c10::get_default_dtype()) == *dtype);
}

bool RunnablePart::isFitInput(const at::Tensor& tensor) {
  if (!tensor.defined() || at::isTensorSubclassLike(tensor)) {
    return false;
  }
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return !meta || meta->requires_grad_ || meta->grad_fn_ || !tensor.requires_grad();
}

bool RunnablePart::modesFit() { return at::GradMode::is_enabled() && autocastIsOff(); }

bool RunnablePart::requireGrad(const InputMask& mask, const Stack& inputs) const {
  return std::all_of(tensor_inputs_.begin(), tensor_inputs_.end(), [&](size_t i) {
    return inputs[i].isTensor() && inputs[i].toTensor().requires_grad() == mask[i];
  });
}

bool RunnablePart::guardAllows(const InputMask& requires_grad) const {
  for (size_t i = 0; guard_ == Guard::Flags && i < requires_grad.size(); ++i) {
    if (requires_grad[i] != expected_[i] && (open_.empty() || !open_[i])) {
      return false;
    }
  }
  return guard_ != Guard::None;
}

std::shared_ptr<const PartVariant> RunnablePart::variantThatRuns(const InputMask& requires_grad) const {
  return compiled_ && anyOf(requires_grad) && guardAllows(requires_grad) ? variantFor(requires_grad)
                                                                         : nullptr;
}

bool RunnablePart::fits(const InputMask& requires_grad, const Stack& inputs) const {
  return modesFit() && requireGrad(requires_grad, inputs) && fitsFormulas(inputs);
}

compat::NodePtr RunnablePart::run(Stack& stack, const std::shared_ptr<PieceRun>& piece_run) const {
  if (compiled_ && modesFit() && fitsFormulas(stack)) {
    if (expected_variant_ && (guard_ == Guard::None || requireGrad(expected_, stack))) {
      return runCompiled(expected_variant_, stack, piece_run);
    }
    InputMask requires_grad(stack.size(), false);
    for (size_t i : tensor_inputs_) {
      requires_grad[i] = stack[i].toTensor().requires_grad();
    }
    if (auto variant = variantThatRuns(requires_grad)) {
      return runCompiled(variant, stack, piece_run);
    }
  }
  torch::jit::InterpreterState(plain()).run(stack);
  return nullptr;
}

compat::NodePtr RunnablePart::runCompiled(const std::shared_ptr<const PartVariant>& variant, Stack& stack,
                                          const std::shared_ptr<PieceRun>& piece_run) const {
  const c10::SmallVector<c10::IValue, 8> inputs(stack.begin(), stack.end());
  {
    at::NoGradGuard no_grad;
    torch::jit::InterpreterState(variant->forward()).run(stack);
  }
  return attachNode(variant, inputs, stack, piece_run);
}

compat::NodePtr RunnablePart::runAfterForward(const std::shared_ptr<const PartVariant>& variant, Stack& stack,
                                              c10::IValue* results,
                                              const std::shared_ptr<PieceRun>& piece_run) const {
  const c10::SmallVector<c10::IValue, 8> inputs(std::make_move_iterator(stack.begin()),
                                                std::make_move_iterator(stack.end()));
  stack.assign(std::make_move_iterator(results),
               std::make_move_iterator(results + variant->gradient.forward->outputs().size()));
  return attachNode(variant, inputs, stack, piece_run);
}

compat::NodePtr RunnablePart::attachNode(const std::shared_ptr<const PartVariant>& variant,
                                         c10::ArrayRef<c10::IValue> inputs, Stack& stack,
                                         const std::shared_ptr<PieceRun>& piece_run) const {
  const PieceGradient& gradient = variant->gradient;
  // An op that gave back its argument made no node in eager either: that output stays the input it is.
  auto inputItIs = [&](const c10::IValue& value) -> const c10::IValue* {
    if (may_pass_through_) {
      for (size_t i : tensor_inputs_) {
        if (sameObject(inputs[i], value)) {
          return &inputs[i];
        }
      }
    }
    return nullptr;
  };
  c10::SmallVector<bool, 32> ours(stack.size(), false);
  std::vector<std::pair<size_t, size_t>> repeats;  // outputs that are an earlier one of ours
  bool all_ours = true;
  for (size_t k : variant->real_vjps) {
    const size_t o = gradient.vjp_outputs[k];
    bool fresh = stack[o].isTensor() && stack[o].toTensor().defined() &&
                 stack[o].toTensor().is_floating_point() && !inputItIs(stack[o]);
    for (size_t earlier = 0; fresh && may_pass_through_ && earlier < o; ++earlier) {
      if (ours[earlier] && sameObject(stack[earlier], stack[o])) {
        repeats.emplace_back(o, earlier);
        fresh = false;
      }
    }
    ours[o] = fresh;
    all_ours = all_ours && fresh;
  }
  InputMask reached_by_some;
  if (!all_ours) {
    reached_by_some.assign(inputs.size(), false);
    for (size_t k : variant->real_vjps) {
      const size_t o = gradient.vjp_outputs[k];
      for (size_t i = 0; ours[o] && i < inputs.size(); ++i) {
        reached_by_some[i] = reached_by_some[i] || gradient.reaching[o][i];
      }
    }
  }
  const InputMask& reached = all_ours ? variant->reached : reached_by_some;
  const bool any_ours = anyOf(reached);

  torch::autograd::edge_list edges;
  edges.reserve(gradient.gradient_inputs.size());
  for (size_t i : gradient.gradient_inputs) {
    // An edge alone makes hooks of the input fire: none where eager has no path.
    edges.push_back(reached[i] ? torch::autograd::impl::gradient_edge(inputs[i].toTensor())
                               : torch::autograd::Edge());
  }
  auto node = compat::makeNode<PieceNode>(variant, piece_run, variant->real_vjps, variant->all_gradients);
  node->set_next_edges(std::move(edges));
  for (size_t k : variant->real_vjps) {
    const size_t o = gradient.vjp_outputs[k];
    if (!any_ours || !ours[o]) {
      node->add_input_metadata(torch::autograd::Node::undefined_input{});
      continue;
    }
    stack[o] = withoutViewRecord(stack[o].toTensor());
    torch::autograd::create_gradient_edge(stack[o].toTensor(), node);
  }
  for (const auto& [output, earlier] : repeats) {
    stack[output] = stack[earlier];
  }
  if (any_ours) {
    size_t capture = 0;
    node->expectSaved(gradient.captured_inputs.size() + gradient.captured_outputs.size());
    for (size_t i : gradient.captured_inputs) {
      save(*node, inputs[i], gradient.metadata_only[capture++], /*made_here=*/false);
    }
    for (size_t o : gradient.captured_outputs) {
      const c10::IValue* input = inputItIs(stack[o]);
      save(*node, input ? *input : stack[o], gradient.metadata_only[capture++], /*made_here=*/!input);
    }
  }
  stack.resize(gradient.real_outputs);
  return any_ours ? compat::NodePtr(std::move(node)) : compat::NodePtr();
}

}  // namespace faultline
