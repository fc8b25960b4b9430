#include "oracles/campaign/triggers.h"

#include <torch/csrc/jit/ir/constants.h>

#include "oracles/campaign/case_facts.h"

namespace faultline {

namespace {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

using OpNames = std::unordered_set<std::string_view>;

bool isOneOf(const Node* node, const OpNames& names) { return names.count(node->kind().toQualString()) != 0; }

template <class Matches>
bool anyNode(const CaseFacts& facts, Matches matches) {
  return std::any_of(facts.nodes().begin(), facts.nodes().end(), matches);
}

// An op of these that a gradient goes through.
bool differentiatesOne(const Case& c, const OpNames& names) {
  const CaseFacts facts(c);
  return anyNode(facts,
                 [&](const Node* node) { return isOneOf(node, names) && facts.anyInputNeedsGrad(node); });
}

// Views with an autodiff formula that are missing in the list of views which libtorch keeps out of
// differentiable subgraphs (isViewOp in create_autodiff_subgraphs.cpp).
bool writeIntoUnlistedView(const Case& c) {
  static const OpNames names{"aten::t", "aten::permute", "aten::squeeze", "aten::unsqueeze"};
  const CaseFacts facts(c);
  return anyNode(facts,
                 [&](const Node* node) { return isOneOf(node, names) && facts.isWrittenThrough(node); });
}

// They return their very argument where there is nothing to do. Autodiff has formulas for them and takes the
// result for a new tensor.
const OpNames& opsThatMayReturnTheirArgument() {
  static const OpNames names{"aten::type_as", "aten::to", "aten::contiguous", "aten::dropout"};
  return names;
}

bool writeIntoSameTensor(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return isOneOf(node, opsThatMayReturnTheirArgument()) && facts.isWrittenThrough(node);
  });
}

bool hasMode(const Case& c, bool grad_mode) {
  return std::any_of(c.runs.begin(), c.runs.end(),
                     [&](const CaseRun& run) { return run.grad_mode == grad_mode; });
}

// The optimised graph asks whether its inputs require grad, not in which mode it is called.
bool callersDisagreeOnGradMode(const Case& c) {
  const CaseFacts facts(c);
  return hasMode(c, true) && hasMode(c, false) && anyNode(facts, [&](const Node* node) {
           return node->kind().is_aten() && facts.anyInputNeedsGrad(node);
         });
}

bool isInsideControlFlow(const Node* node) { return node->owningBlock()->owningNode() != nullptr; }

// One that is not settled when the graph is optimised: set from data, or in a body that runs or not, or
// often.
bool gradModeDependsOnData(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [](const Node* node) {
    return isOp(node, "aten::set_grad_enabled") &&
           (node->input(0)->node()->kind() != prim::Constant || isInsideControlFlow(node));
  });
}

bool changesGradMode(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [](const Node* node) { return isOp(node, "aten::set_grad_enabled"); });
}

// Its formula keeps the result for the backward, eager keeps the argument.
bool writeIntoHardswish(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return isOp(node, "aten::hardswish") && facts.isWrittenThrough(node) && facts.anyInputNeedsGrad(node);
  });
}

// The tensor whose dtype is taken has no part in the value.
bool typeOfATensorThatNeedsGrad(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return isOp(node, "aten::type_as") && facts.mayNeedGrad(node->inputs()[1]);
  });
}

void flagsOf(const InputSpec& spec, std::string& flags) {
  flags += spec.requires_grad ? '1' : '0';
  for (const InputSpec& element : spec.elements) {
    flagsOf(element, flags);
  }
}

// Guards look at tensors, not into lists of them.
bool flagsInAListDiffer(const Case& c) {
  for (size_t i = 0; i < c.graph->inputs().size(); ++i) {
    std::set<std::string> seen;
    for (const CaseRun& run : c.runs) {
      if (i < run.inputs.size() && run.inputs[i].kind == InputSpec::Kind::List) {
        std::string flags;
        flagsOf(run.inputs[i], flags);
        seen.insert(flags);
      }
    }
    if (seen.size() > 1) {
      return true;
    }
  }
  return false;
}

bool tieOfMaxOrMin(const Case& c) {
  // The binary ones: max.other and min.other.
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return (isOp(node, "aten::max") || isOp(node, "aten::min")) && node->inputs().size() == 2 &&
           facts.anyInputNeedsGrad(node);
  });
}

bool gradientAtABound(const Case& c) {
  static const OpNames names{"aten::clamp", "aten::hardtanh", "aten::hardsigmoid", "aten::hardswish",
                             "aten::threshold"};
  return differentiatesOne(c, names);
}

// pow(number, tensor) and pow(tensor, tensor); pow(tensor, number) has its own formula.
bool powerWithTensorExponent(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return isOp(node, "aten::pow") && node->input(1)->type()->isSubtypeOf(*c10::TensorType::get()) &&
           facts.anyInputNeedsGrad(node);
  });
}

bool standardDeviation(const Case& c) { return differentiatesOne(c, {"aten::std"}); }

bool isEmptyList(const Value* list) {
  const Node* node = list->node();
  if (node->kind() == prim::ListConstruct) {
    return node->inputs().empty();
  }
  const auto constant = torch::jit::toIValue(list);
  return constant && (constant->isNone() || (constant->isIntList() && constant->toIntVector().empty()));
}

bool meanOverNoDimension(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return isOp(node, "aten::mean") && node->inputs().size() == 4 && isEmptyList(node->input(1)) &&
           facts.anyInputNeedsGrad(node);
  });
}

bool hasPhase(const Case& c, BackwardSpec::Kind kind) {
  return std::any_of(c.runs.begin(), c.runs.end(), [&](const CaseRun& run) {
    return std::any_of(run.backwards.begin(), run.backwards.end(),
                       [&](const BackwardSpec& spec) { return spec.kind == kind; });
  });
}

bool secondBackward(const Case& c) { return hasPhase(c, BackwardSpec::Kind::Double); }

bool secondBackwardOfPiecewiseLinear(const Case& c) {
  static const OpNames names{"aten::hardshrink", "aten::leaky_relu", "aten::relu6",   "aten::relu",
                             "aten::threshold",  "aten::var",        "aten::hardtanh"};
  return secondBackward(c) && differentiatesOne(c, names);
}

bool isComplex(const InputSpec& spec) {
  return (spec.kind == InputSpec::Kind::Tensor && c10::isComplexType(spec.dtype)) ||
         std::any_of(spec.elements.begin(), spec.elements.end(), isComplex);
}

// Formulas are written for real numbers: nothing is conjugated.
bool complexGradient(const Case& c) {
  const bool complex = std::any_of(c.runs.begin(), c.runs.end(), [](const CaseRun& run) {
    return std::any_of(run.inputs.begin(), run.inputs.end(), isComplex);
  });
  const CaseFacts facts(c);
  return complex && anyNode(facts, [&](const Node* node) {
           return node->kind().is_aten() && facts.anyInputNeedsGrad(node);
         });
}

bool hasUnusedPart(const Node* split) {
  for (const torch::jit::Use& use : split->output()->uses()) {
    const auto parts = use.user->outputs();
    if (use.user->kind() != prim::ListUnpack ||
        std::any_of(parts.begin(), parts.end(), [](const Value* part) { return !part->hasUses(); })) {
      return true;
    }
  }
  return false;
}

// The backward of a split joins the gradients of its parts, those that are defined.
bool partOfASplit(const Case& c) {
  static const OpNames names{"aten::chunk", "aten::split", "aten::split_with_sizes", "aten::unbind"};
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return isOneOf(node, names) && facts.anyInputNeedsGrad(node) &&
           (c.graph->outputs().size() > 1 || hasUnusedPart(node));
  });
}

// A differentiable subgraph gives zeros to inputs that the output asked for does not depend on.
bool backwardFromOneOfSeveral(const Case& c) {
  return hasPhase(c, BackwardSpec::Kind::Output) && c.graph->outputs().size() > 1;
}

// The same ops in a differentiable subgraph: what comes out is another tensor than what went in.
bool returnsSameTensor(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return isOneOf(node, opsThatMayReturnTheirArgument()) && facts.isReturned(node);
  });
}

bool clampWithTensorBounds(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    const auto isTensor = [](const Value* bound) {
      return bound->type()->isSubtypeOf(*c10::TensorType::get());
    };
    return isOp(node, "aten::clamp") && (isTensor(node->input(1)) || isTensor(node->input(2))) &&
           facts.anyInputNeedsGrad(node);
  });
}

bool anyInput(const Case& c, bool (*matches)(const InputSpec&)) {
  return std::any_of(c.runs.begin(), c.runs.end(), [&](const CaseRun& run) {
    return std::any_of(run.inputs.begin(), run.inputs.end(), matches);
  });
}

bool isEmptyTensor(const InputSpec& spec) {
  return (spec.kind == InputSpec::Kind::Tensor &&
          std::find(spec.sizes.begin(), spec.sizes.end(), 0) != spec.sizes.end()) ||
         std::any_of(spec.elements.begin(), spec.elements.end(), isEmptyTensor);
}

bool linearOfNothing(const Case& c) {
  return anyInput(c, isEmptyTensor) && differentiatesOne(c, {"aten::linear", "aten::matmul"});
}

bool addmm(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [](const Node* node) { return isOp(node, "aten::addmm"); });
}

bool constantWritten(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) {
    return node->kind() == prim::Constant && facts.isWrittenThrough(node);
  });
}

// Before every run, optimised or not, such a constant is made the number that is in it (CanonicalizeOps), and
// numbers do not widen a result as tensors do.
bool numberInATensorConstant(const Case& c) {
  static const OpNames names{"aten::add", "aten::sub", "aten::mul", "aten::div"};
  const CaseFacts facts(c);
  return anyNode(facts, [](const Node* node) {
    if (!isOneOf(node, names) || node->inputs().size() < 2) return false;
    const auto constant = torch::jit::toIValue(node->input(1));
    return constant && constant->isTensor() && constant->toTensor().defined() &&
           constant->toTensor().dim() == 0;
  });
}

bool randomOpWithoutUse(const Case& c) {
  const CaseFacts facts(c);
  return anyNode(facts, [&](const Node* node) { return node->isNondeterministic() && !facts.isUsed(node); });
}

bool severalRandomOps(const Case& c) {
  const CaseFacts facts(c);
  return std::count_if(facts.nodes().begin(), facts.nodes().end(), [&](const Node* node) {
           return node->isNondeterministic() && facts.isUsed(node);
         }) > 1;
}

void floatingDtypes(const InputSpec& spec, std::set<at::ScalarType>& dtypes) {
  if (spec.kind == InputSpec::Kind::Tensor && c10::isFloatingType(spec.dtype)) {
    dtypes.insert(spec.dtype);
  }
  for (const InputSpec& element : spec.elements) {
    floatingDtypes(element, dtypes);
  }
}

bool mixedPrecision(const Case& c) {
  return std::any_of(c.runs.begin(), c.runs.end(), [](const CaseRun& run) {
    std::set<at::ScalarType> dtypes;
    for (const InputSpec& spec : run.inputs) {
      floatingDtypes(spec, dtypes);
    }
    return dtypes.size() > 1;
  });
}

bool hookOnASeam(const Case& c) {
  return std::any_of(c.plan.hooks.begin(), c.plan.hooks.end(),
                     [](const HookSpec& hook) { return !hook.seam.empty(); });
}

}  // namespace

const std::vector<Trigger>& triggers() {
  static const std::vector<Trigger> all{
#define FAULTLINE_TRIGGER(name, holds, help) {#name, help, holds},
#include "oracles/campaign/triggers.def"
#undef FAULTLINE_TRIGGER
  };
  return all;
}

const Trigger* findTrigger(std::string_view name) {
  for (const Trigger& trigger : triggers()) {
    if (trigger.name == name) {
      return &trigger;
    }
  }
  return nullptr;
}

}  // namespace faultline
