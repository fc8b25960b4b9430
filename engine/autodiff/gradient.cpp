#include "engine/autodiff/gradient.h"

#include <algorithm>
#include <exception>
#include <set>
#include <string>
#include <unordered_map>

#include <torch/csrc/jit/passes/common_subexpression_elimination.h>
#include <torch/csrc/jit/passes/constant_pooling.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_grad_of.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/formulas.h"
#include "engine/autodiff/reverse.h"
#include "engine/support/check.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

namespace {

void join(InputMask& into, const InputMask& from) {
  for (size_t i = 0; i < into.size(); ++i) {
    into[i] = into[i] || from[i];
  }
}

class Reach {
 public:
  Reach(const Graph& graph, const InputMask& requires_grad) : none_(graph.inputs().size(), false) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      if (requires_grad[i]) {
        InputMask mask = none_;
        mask[i] = true;
        reach_.emplace(graph.inputs()[i], std::move(mask));
      }
    }
    visit(graph.block());
  }

  const InputMask& of(const Value* value) const {
    auto it = reach_.find(value);
    return it == reach_.end() ? none_ : it->second;
  }

 private:
  void visit(const Block* block) {
    for (const Node* node : block->nodes()) {
      InputMask mask = none_;
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        if (passesGradient(node, i)) {
          join(mask, of(node->input(i)));
        }
      }
      // Blocks of If stand only in formulas here; whichever runs, its results come from what it uses.
      for (const Block* inner : node->blocks()) {
        visit(inner);
        for (const Value* output : inner->outputs()) {
          join(mask, of(output));
        }
      }
      if (mask == none_) {
        continue;
      }
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        const Value* output = node->outputs()[i];
        if (carriesGradient(node, i) && mayHoldTensor(*output->type())) {
          reach_[output] = mask;
        }
      }
    }
  }

  InputMask none_;
  std::unordered_map<const Value*, InputMask> reach_;
};

std::string messageOf(const std::exception& error) {
  if (const auto* c10_error = dynamic_cast<const c10::Error*>(&error)) {
    return c10_error->what_without_backtrace();
  }
  return error.what();
}

// `differentiate` keeps what it replaced by a formula's own forward, and its result cannot be run as it is.
void makeRunnable(const std::shared_ptr<Graph>& backward) {
  torch::jit::LowerGradOf(*backward);
  torch::jit::Inline(*backward);
  flattenRows(backward->block());
  torch::jit::LowerSimpleTuples(backward);
  torch::jit::EliminateCommonSubexpression(backward);
  torch::jit::ConstantPooling(backward);
  // The interpreter need not make a tuple for us to take apart.
  Node* tuple = backward->outputs().size() == 1 ? backward->outputs()[0]->node() : nullptr;
  if (tuple && tuple->kind() == torch::jit::prim::TupleConstruct) {
    for (Value* element : tuple->inputs()) {
      backward->registerOutput(element);
    }
    backward->eraseOutput(0);
  }
  torch::jit::EliminateDeadCode(backward);
}

// Asks for sizes, dtype or presence only.
bool readsMetadata(const torch::jit::Use& use) {
  // By name: which ops have a symbol of their own depends on torch's version.
  static const std::set<c10::Symbol> kinds = {c10::Symbol::fromQualString("aten::numel"),
                                              c10::aten::size,
                                              c10::aten::dim,
                                              c10::aten::__isnot__,
                                              c10::aten::__is__,
                                              torch::jit::prim::dtype,
                                              torch::jit::prim::device,
                                              c10::aten::_size_if_not_equal};
  if (use.user->kind() == torch::jit::prim::unchecked_cast) {
    const auto& uses = use.user->output()->uses();
    return std::all_of(uses.begin(), uses.end(), readsMetadata);
  }
  return kinds.count(use.user->kind()) || (use.user->kind() == c10::aten::type_as && use.offset == 1);
}

// A formula captures what any of its gradients needs; what only gradients nobody asked for need is not kept
// alive, and may be written to, as in eager.
void dropUnusedCaptures(PieceGradient& gradient) {
  size_t at = gradient.backward->inputs().size();
  for (auto* captured : {&gradient.captured_outputs, &gradient.captured_inputs}) {
    for (size_t i = captured->size(); i-- > 0;) {
      if (!gradient.backward->inputs()[--at]->hasUses()) {
        gradient.backward->eraseInput(at);
        captured->erase(captured->begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
}

}  // namespace

std::shared_ptr<Graph> copyGraph(const Graph& graph) { return const_cast<Graph&>(graph).copy(); }

std::vector<InputMask> reachingInputs(const Graph& graph, const InputMask& requires_grad) {
  FAULTLINE_CHECK(requires_grad.size() == graph.inputs().size(), "one flag per input");
  Reach reach(graph, requires_grad);
  std::vector<InputMask> result;
  result.reserve(graph.outputs().size());
  for (const Value* output : graph.outputs()) {
    result.push_back(reach.of(output));
  }
  return result;
}

std::shared_ptr<Graph> copyWithRequiresGrad(const Graph& graph, const InputMask& requires_grad) {
  auto copy = copyGraph(graph);
  Reach reach(*copy, requires_grad);
  auto set_type = [&](Value* value) {
    if (value->type()->kind() == c10::TypeKind::TensorType) {
      const InputMask& mask = reach.of(value);
      const bool needs = anyOf(mask);
      value->setType(c10::TensorType::get()->withRequiresGrad(needs));
    }
  };
  for (Value* input : copy->inputs()) {
    set_type(input);
  }
  for (Node* node : copy->nodes()) {
    for (Value* output : node->outputs()) {
      set_type(output);
    }
  }
  return copy;
}

Result<torch::jit::Gradient> rawGradient(const Graph& graph, const InputMask& requires_grad) {
  try {
    auto copy = copyWithRequiresGrad(graph, requires_grad);
    dropIdleDropout(*copy);
    auto gradient = reverse(std::move(copy));
    replaceFormulas(*gradient.df);
    return gradient;
  } catch (const std::exception& error) {
    return fail(ErrorKind::Unsupported, "autodiff: " + messageOf(error));
  }
}

Result<PieceGradient> differentiatePiece(const Graph& graph, const InputMask& requires_grad) {
  auto raw = rawGradient(graph, requires_grad);
  if (!raw) {
    return tl::make_unexpected(raw.error());
  }
  try {
    PieceGradient result;
    result.forward = raw->f;
    result.backward = raw->df;
    result.real_outputs = raw->f_real_outputs;
    result.vjp_outputs = raw->df_input_vjps;
    result.captured_inputs = raw->df_input_captured_inputs;
    result.captured_outputs = raw->df_input_captured_outputs;
    result.gradient_inputs = raw->df_output_vjps;
    torch::jit::EliminateDeadCode(result.forward);
    makeRunnable(result.backward);

    // A formula's own forward may hold ops that hide or invent paths: the piece's outputs go by its ops as
    // written.
    result.reaching = reachingInputs(*result.forward, requires_grad);
    auto written = reachingInputs(graph, requires_grad);
    std::copy(written.begin(), written.end(), result.reaching.begin());
    FAULTLINE_CHECK(
        result.backward->inputs().size() ==
            result.vjp_outputs.size() + result.captured_inputs.size() + result.captured_outputs.size(),
        "inputs of a backward graph are gradients and captures");
    dropUnusedCaptures(result);
    for (size_t i = result.vjp_outputs.size(); i < result.backward->inputs().size(); ++i) {
      const auto& uses = result.backward->inputs()[i]->uses();
      result.metadata_only.push_back(std::all_of(uses.begin(), uses.end(), readsMetadata));
    }
    return result;
  } catch (const std::exception& error) {
    return fail(ErrorKind::Unsupported, "autodiff: " + messageOf(error));
  }
}

}  // namespace faultline
