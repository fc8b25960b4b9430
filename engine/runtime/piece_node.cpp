#include "engine/runtime/piece_node.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "engine/support/check.h"

namespace faultline {

using torch::autograd::variable_list;
using torch::jit::Stack;

PartVariant::PartVariant(PieceGradient part_gradient)
    : gradient(std::move(part_gradient)), backward(gradient.backward, "backward") {
  for (size_t g = 0; g < gradient.gradient_inputs.size(); ++g) {
    all_gradients.push_back(g);
  }
  std::map<InputMask, TemporaryClass> classes;
  reached.assign(gradient.forward->inputs().size(), false);
  for (size_t k = 0; k < gradient.vjp_outputs.size(); ++k) {
    const size_t output = gradient.vjp_outputs[k];
    if (output < gradient.real_outputs) {
      real_vjps.push_back(k);
      for (size_t i = 0; i < reached.size(); ++i) {
        reached[i] = reached[i] || gradient.reaching[output][i];
      }
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

const torch::jit::Code& PartVariant::forward() const {
  std::call_once(forward_made_, [this] { forward_.emplace(gradient.forward, "piece"); });
  return *forward_;
}

PieceNode::PieceNode(std::shared_ptr<const PartVariant> variant, std::shared_ptr<PieceRun> run,
                     const std::vector<size_t>& vjps, const std::vector<size_t>& gradients)
    : variant_(std::move(variant)), run_(std::move(run)), vjps_(vjps), gradients_(gradients) {}

void PieceNode::expectSaved(size_t values) {
  constexpr size_t most = 1000 / sizeof(Saved);
  saved_.reserve((values + most - 1) / most);
  for (; values > 0; values -= std::min(values, most)) {
    saved_.emplace_back().reserve(std::min(values, most));
  }
}

PieceNode::Block& PieceNode::roomForOne() {
  if (saved_[filling_].size() == saved_[filling_].capacity()) ++filling_;
  FAULTLINE_CHECK(filling_ < saved_.size(), "as many values are saved as were expected");
  return saved_[filling_];
}

std::string PieceNode::name() const { return fmt::format("PieceBackward{}", run_->piece()); }

void PieceNode::release_variables() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Block& block : saved_) {
    for (Saved& saved : block) {
      if (saved.is_tensor) {
        saved.tensor.reset_data();
      }
    }
  }
}

void PieceNode::unpackSaved(std::vector<c10::IValue>& onto) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Block& block : saved_) {
    for (const Saved& saved : block) {
      onto.push_back(saved.is_tensor ? c10::IValue(saved.tensor.unpack(getptr())) : saved.other);
    }
  }
}

void PieceNode::attachTemporaries(std::vector<c10::IValue>& captured) {
  const PieceGradient& gradient = variant_->gradient;
  const std::vector<c10::IValue> plain = captured;
  for (const auto& temporaries : variant_->temporary_classes) {
    auto node = compat::makeNode<PieceNode>(variant_, run_, temporaries.vjps, temporaries.gradients);
    torch::autograd::edge_list edges;
    for (size_t g : temporaries.gradients) {
      // A temporary's own node, differentiated again, may give fewer gradients than it.
      auto mine = std::find(gradients_.begin(), gradients_.end(), g);
      edges.push_back(mine == gradients_.end() ? torch::autograd::Edge()
                                               : next_edge(static_cast<size_t>(mine - gradients_.begin())));
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
    node->expectSaved(plain.size());
    for (const c10::IValue& value : plain) {
      value.isTensor() ? node->saveTensor(value.toTensor(), false) : node->saveOther(value);
    }
  }
}

variable_list PieceNode::apply(variable_list&& grads) {
  run_->backwardBegins();
  const PieceGradient& gradient = variant_->gradient;
  Stack stack;
  stack.reserve(gradient.vjp_outputs.size() + gradient.captured_inputs.size() +
                gradient.captured_outputs.size());
  stack.resize(gradient.vjp_outputs.size(), c10::IValue(at::Tensor()));
  const bool all_defined =
      std::all_of(grads.begin(), grads.end(), [](const at::Tensor& grad) { return grad.defined(); });
  InputMask reached;  // where not all are defined
  if (!all_defined) {
    reached.assign(gradient.forward->inputs().size(), false);
    for (size_t i = 0; i < vjps_.size(); ++i) {
      const InputMask& mask = gradient.reaching[gradient.vjp_outputs[vjps_[i]]];
      for (size_t k = 0; grads[i].defined() && k < mask.size(); ++k) {
        reached[k] = reached[k] || mask[k];
      }
    }
  }
  for (size_t i = 0; i < vjps_.size(); ++i) {
    stack[vjps_[i]] = std::move(grads[i]);
  }
  if (at::GradMode::is_enabled()) {
    std::vector<c10::IValue> captured;
    unpackSaved(captured);
    attachTemporaries(captured);
    std::move(captured.begin(), captured.end(), std::back_inserter(stack));
  } else {
    unpackSaved(stack);
  }
  torch::jit::InterpreterState(variant_->backward).run(stack);
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
