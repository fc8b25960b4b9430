#include "engine/autodiff/shields.h"

#include <algorithm>

#include "engine/support/check.h"

namespace faultline {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

bool contains(const std::vector<size_t>& positions, size_t position) {
  return std::find(positions.begin(), positions.end(), position) != positions.end();
}

// `output` is out of the forward: what stood behind it moves up.
void closeGap(std::vector<size_t>& positions, size_t output) {
  for (size_t& position : positions) {
    position -= position > output ? 1 : 0;
  }
}

// The gradient that came for a value through this input of the backward comes through another one from now
// on.
void dropAddend(Graph& backward, size_t input) {
  Value* addend = backward.inputs()[input];
  while (addend->hasUses()) {
    const torch::jit::Use use = addend->uses()[0];
    FAULTLINE_CHECK(use.user->kind() == prim::AutogradAdd, "a temporary's gradient is only added");
    use.user->output()->replaceAllUsesWith(use.user->input(1 - use.offset));
    use.user->destroy();
  }
  backward.eraseInput(input);
}

}  // namespace

bool losesGradients(const PieceGradient& gradient) {
  const auto outputs = gradient.forward->outputs();
  return std::any_of(gradient.captured_outputs.begin(), gradient.captured_outputs.end(), [&](size_t o) {
    return o >= gradient.real_outputs && !contains(gradient.vjp_outputs, o) &&
           outputs[o]->type()->kind() == c10::TypeKind::TensorType && anyOf(gradient.reaching[o]);
  });
}

void shieldResults(Graph& graph) {
  for (auto it = graph.nodes().begin(); it != graph.nodes().end(); ++it) {
    if (it->kind() == prim::Constant || it->kind() == prim::ListConstruct) {
      continue;
    }
    Node* last = *it;
    for (Value* result : it->outputs()) {
      if (result->type()->kind() != c10::TypeKind::TensorType || !result->requires_grad()) {
        continue;
      }
      Node* nothing = graph.createAutogradZero()->insertAfter(last);
      nothing->output()->setType(c10::TensorType::get()->withRequiresGrad(false));
      Node* shield = graph.create(prim::AutogradAdd, {result, nothing->output()})->insertAfter(nothing);
      shield->output()->setType(result->type());
      result->replaceAllUsesAfterNodeWith(shield, shield->output());
      last = shield;
    }
    while (*it != last) {
      ++it;
    }
  }
}

void dropShields(torch::jit::Gradient& gradient) {
  for (auto it = gradient.f->nodes().begin(); it != gradient.f->nodes().end(); ++it) {
    if (it->kind() == prim::AutogradAdd) {
      it->output()->replaceAllUsesWith(it->input(0));
      it.destroyCurrent();
    }
  }
  for (auto it = gradient.df->nodes().begin(); it != gradient.df->nodes().end(); ++it) {
    if (it->kind() == prim::GradOf &&
        it->s(torch::jit::attr::name) == c10::Symbol(prim::AutogradAdd).toDisplayString()) {
      for (Value* passed : it->outputs()) {
        passed->replaceAllUsesWith(it->input(0));
      }
      it.destroyCurrent();
    }
  }
}

void mergeCaptures(PieceGradient& gradient) {
  Graph &forward = *gradient.forward, &backward = *gradient.backward;
  for (size_t j = forward.outputs().size(); j-- > gradient.real_outputs;) {
    const auto outputs = forward.outputs();
    const auto first =
        static_cast<size_t>(std::find(outputs.begin(), outputs.end(), outputs[j]) - outputs.begin());
    if (first == j) {
      continue;
    }
    auto positionOf = [](std::vector<size_t>& list, size_t output) {
      return std::find(list.begin(), list.end(), output);
    };
    auto& captured = gradient.captured_outputs;
    auto& vjps = gradient.vjp_outputs;
    if (auto mine = positionOf(captured, j); mine != captured.end()) {
      auto other = positionOf(captured, first);
      if (other == captured.end()) {
        *mine = first;
      } else {
        const size_t begin = vjps.size() + gradient.captured_inputs.size();
        const size_t input = begin + static_cast<size_t>(mine - captured.begin());
        backward.inputs()[input]->replaceAllUsesWith(
            backward.inputs()[begin + static_cast<size_t>(other - captured.begin())]);
        backward.eraseInput(input);
        captured.erase(mine);
      }
    }
    if (auto mine = positionOf(vjps, j); mine != vjps.end()) {
      if (positionOf(vjps, first) == vjps.end()) {
        *mine = first;
      } else {
        dropAddend(backward, static_cast<size_t>(mine - vjps.begin()));
        vjps.erase(mine);
      }
    }
    forward.eraseOutput(j);
    closeGap(captured, j);
    closeGap(vjps, j);
  }
}

}  // namespace faultline
