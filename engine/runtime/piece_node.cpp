#include "engine/runtime/piece_node.h"

#include <map>

#include <fmt/format.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "engine/support/check.h"

namespace faultline {

using torch::autograd::variable_list;
using torch::jit::Stack;

PartVariant::PartVariant(PieceGradient part_gradient)
    : gradient(std::move(part_gradient)),
      forward(gradient.forward, "piece"),
      backward(gradient.backward, "backward") {
  std::map<InputMask, TemporaryClass> classes;
  for (size_t k = 0; k < gradient.vjp_outputs.size(); ++k) {
    const size_t output = gradient.vjp_outputs[k];
    if (output < gradient.real_outputs) {
      real_vjps.push_back(k);
    } else if (anyOf(gradient.reaching[output]) &&
               std::count(gradient.captured_outputs.begin(), gradient.captured_outputs.end(), output)) {
      classes[gradient.reaching[output]].vjps.push_back(k);
    }
  }
  for (auto& [reaching, temporaries] : classes) {
    for (size_t g = 0; g < gradient.gradient_inputs.size(); ++g) {
      if (reaching[gradient.gradient_inputs[g]]) {
        temporaries.gradients.push_back(g);
      }
    }
    temporary_classes.push_back(std::move(temporaries));
  }
}

PieceNode::PieceNode(std::shared_ptr<const PartVariant> variant, std::shared_ptr<PieceRun> run,
                     std::vector<size_t> vjps, std::vector<size_t> gradients)
    : variant_(std::move(variant)),
      run_(std::move(run)),
      vjps_(std::move(vjps)),
      gradients_(std::move(gradients)) {
  saved_.reserve(variant_->gradient.captured_inputs.size() + variant_->gradient.captured_outputs.size());
}

std::string PieceNode::name() const { return fmt::format("PieceBackward{}", run_->piece()); }

void PieceNode::release_variables() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Saved& saved : saved_) {
    if (saved.is_tensor) {
      saved.tensor.reset_data();
    }
  }
}

std::vector<c10::IValue> PieceNode::unpackSaved() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<c10::IValue> values;
  values.reserve(saved_.size());
  for (const Saved& saved : saved_) {
    values.push_back(saved.is_tensor ? c10::IValue(saved.tensor.unpack(getptr())) : saved.other);
  }
  return values;
}

void PieceNode::attachTemporaries(std::vector<c10::IValue>& captured) {
  const PieceGradient& gradient = variant_->gradient;
  const std::vector<c10::IValue> plain = captured;
  for (const auto& temporaries : variant_->temporary_classes) {
    auto node = compat::makeNode<PieceNode>(variant_, run_, temporaries.vjps, std::vector<size_t>{});
    torch::autograd::edge_list edges;
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const size_t g = gradients_[i];
      if (std::find(temporaries.gradients.begin(), temporaries.gradients.end(), g) !=
          temporaries.gradients.end()) {
        edges.push_back(next_edge(i));
        node->gradients_.push_back(g);
      }
    }
    node->set_next_edges(std::move(edges));
    for (size_t k : temporaries.vjps) {
      const size_t output = gradient.vjp_outputs[k];
      auto it = std::find(gradient.captured_outputs.begin(), gradient.captured_outputs.end(), output);
      const size_t at =
          gradient.captured_inputs.size() + static_cast<size_t>(it - gradient.captured_outputs.begin());
      if (!plain[at].isTensor() || !plain[at].toTensor().defined() ||
          !plain[at].toTensor().is_floating_point()) {
        node->add_input_metadata(torch::autograd::Node::undefined_input{});
        continue;
      }
      at::Tensor attached = plain[at].toTensor().detach();
      torch::autograd::create_gradient_edge(attached, node);
      captured[at] = std::move(attached);
    }
    for (const c10::IValue& value : plain) {
      value.isTensor() ? node->saveTensor(value.toTensor(), false) : node->saveOther(value);
    }
  }
}

variable_list PieceNode::apply(variable_list&& grads) {
  run_->backwardBegins();
  const PieceGradient& gradient = variant_->gradient;
  std::vector<c10::IValue> captured = unpackSaved();
  if (at::GradMode::is_enabled()) {
    attachTemporaries(captured);
  }
  Stack stack(gradient.vjp_outputs.size(), c10::IValue(at::Tensor()));
  stack.reserve(stack.size() + captured.size());
  InputMask reached(gradient.forward->inputs().size(), false);
  bool all_defined = true;
  for (size_t i = 0; i < vjps_.size(); ++i) {
    if (grads[i].defined()) {
      const InputMask& mask = gradient.reaching[gradient.vjp_outputs[vjps_[i]]];
      for (size_t k = 0; k < mask.size(); ++k) {
        reached[k] = reached[k] || mask[k];
      }
      stack[vjps_[i]] = std::move(grads[i]);
    } else {
      all_defined = false;
    }
  }
  std::move(captured.begin(), captured.end(), std::back_inserter(stack));
  torch::jit::InterpreterState(variant_->backward).run(stack);
  if (stack.size() == 1 && stack[0].isTuple()) {
    auto tuple = stack[0].toTuple();
    stack.assign(tuple->elements().begin(), tuple->elements().end());
  }
  FAULTLINE_CHECK(stack.size() == gradient.gradient_inputs.size(), "one result per gradient");
  variable_list result(gradients_.size());
  for (size_t i = 0; i < gradients_.size(); ++i) {
    const size_t g = gradients_[i];
    if (stack[g].isTensor() && (all_defined || reached[gradient.gradient_inputs[g]])) {
      result[i] = std::move(stack[g]).toTensor();
    }
  }
  run_->backwardEnds();
  return result;
}

}  // namespace faultline
