#include <fmt/format.h>

#include "engine/ir/missing_function.h"
#include "engine/ir/verify_checks.h"
#include "engine/ir/verify_rules.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;
using torch::jit::Block;

// ---- control flow ----

// LowerGradOf gives an undefined tensor where a gradient is missing, whatever the type of the gradient.
bool isMissingGradient(const Value* value) {
  while (value->node()->kind() == c10::prim::profile && value->node()->inputs().size() == 1) {
    value = value->node()->inputs()[0];
  }
  return value->node()->kind() == c10::prim::AutogradZero;
}

std::string branch(const Node& node, size_t which) {
  const Block& block = *node.blocks()[which];
  if (!block.inputs().empty()) {
    return fmt::format("block {} has inputs", which);
  }
  if (block.outputs().size() != node.outputs().size()) {
    return fmt::format("block {} returns {} values, the node {}", which, block.outputs().size(),
                       node.outputs().size());
  }
  return firstOf(block.outputs().size(), [&](size_t i) {
    if (isMissingGradient(block.outputs()[i])) {
      return std::string();
    }
    return arrives(fmt::format("return {} of block {} (%{})", i, which, block.outputs()[i]->debugName()),
                   block.outputs()[i]->type(), node.outputs()[i]->type());
  });
}

std::string condition(const Node& node) {
  const bool lowered = node.inputs()[0]->node()->kind() == c10::prim::AutogradAnyNonZero;
  return lowered ? "" : inputIs(node, 0, c10::BoolType::get());
}

std::string ifNode(const Node& node) {
  return first({[&] { return counts(node, 1, std::nullopt, 2); }, [&] { return condition(node); },
                [&] { return branch(node, 0); }, [&] { return branch(node, 1); }});
}

std::string carried(const Node& node, size_t i) {
  const Block& body = *node.blocks()[0];
  const c10::TypePtr initial = node.inputs()[i + 2]->type();
  const c10::TypePtr inside = body.inputs()[i + 1]->type();
  const c10::TypePtr next = body.outputs()[i + 1]->type();
  const c10::TypePtr result = node.outputs()[i]->type();
  return first(
      {[&] { return arrives(fmt::format("the initial value of carried value {}", i), initial, inside); },
       [&] { return arrives(fmt::format("what the body returns for carried value {}", i), next, inside); },
       [&] { return arrives(fmt::format("the initial value of output {}", i), initial, result); },
       [&] { return arrives(fmt::format("what the body returns for output {}", i), next, result); }});
}

std::string loop(const Node& node) {
  if (node.inputs().size() < 2) {
    return fmt::format("{} inputs, expected a trip count, a condition and the carried values",
                       node.inputs().size());
  }
  const size_t count = node.inputs().size() - 2;
  if (const std::string problem = counts(node, std::nullopt, count, 1); !problem.empty()) {
    return problem;
  }
  const Block& body = *node.blocks()[0];
  if (body.inputs().size() != count + 1 || body.outputs().size() != count + 1) {
    return fmt::format(
        "the body takes {} and returns {} values, expected {} of each: the trip or the condition, then the "
        "carried values",
        body.inputs().size(), body.outputs().size(), count + 1);
  }
  return first({[&] { return inputIs(node, 0, c10::IntType::get()); },
                [&] { return inputIs(node, 1, c10::BoolType::get()); },
                [&] { return arrives("the trip inside", c10::IntType::get(), body.inputs()[0]->type()); },
                [&] {
                  return arrives("the condition that the body returns", body.outputs()[0]->type(),
                                 c10::BoolType::get());
                },
                [&] { return firstOf(count, [&](size_t i) { return carried(node, i); }); }});
}

// The backward of one node, run if any of its inputs is defined.
std::string gradOf(const Node& node) {
  if (const std::string problem = counts(node, std::nullopt, std::nullopt, 1); !problem.empty()) {
    return problem;
  }
  return branch(node, 0);
}

// Gives a bool; LowerGradOf writes int.
std::string anyNonZero(const Node& node) {
  if (const std::string problem = counts(node, std::nullopt, 1, 0); !problem.empty()) {
    return problem;
  }
  const c10::TypeKind kind = node.output()->type()->kind();
  const bool flag = kind == c10::TypeKind::BoolType || kind == c10::TypeKind::IntType;
  return flag ? "" : "gives a bool, but its output is " + writeType(*node.output()->type());
}

// ---- containers ----

std::string listConstruct(const Node& node) {
  if (const std::string problem = counts(node, std::nullopt, 1, 0); !problem.empty()) {
    return problem;
  }
  const auto list = node.output()->type()->cast<c10::ListType>();
  if (!list) {
    return "gives a list, but its output is " + writeType(*node.output()->type());
  }
  return firstOf(node.inputs().size(), [&](size_t i) { return inputIs(node, i, list->getElementType()); });
}

std::string listUnpack(const Node& node) {
  if (const std::string problem = counts(node, 1, std::nullopt, 0); !problem.empty()) {
    return problem;
  }
  const auto list = node.inputs()[0]->type()->cast<c10::ListType>();
  if (!list) {
    return "takes a list, found " + writeType(*node.inputs()[0]->type());
  }
  return firstOf(node.outputs().size(), [&](size_t i) {
    return arrives(fmt::format("output {}", i), list->getElementType(), node.outputs()[i]->type());
  });
}

std::string tupleConstruct(const Node& node) {
  if (const std::string problem = counts(node, std::nullopt, 1, 0); !problem.empty()) {
    return problem;
  }
  const auto tuple = node.output()->type()->cast<c10::TupleType>();
  if (!tuple || tuple->elements().size() != node.inputs().size()) {
    return fmt::format("makes a tuple of {}, but its output is {}", node.inputs().size(),
                       writeType(*node.output()->type()));
  }
  return firstOf(node.inputs().size(), [&](size_t i) { return inputIs(node, i, tuple->elements()[i]); });
}

c10::TupleTypePtr tupleInput(const Node& node) {
  return node.inputs().empty() ? nullptr : node.inputs()[0]->type()->cast<c10::TupleType>();
}

std::string notATuple(const Node& node) {
  return "takes a tuple, found " + (node.inputs().empty() ? "nothing" : writeType(*node.inputs()[0]->type()));
}

std::string tupleUnpack(const Node& node) {
  const auto tuple = tupleInput(node);
  if (!tuple) {
    return notATuple(node);
  }
  if (const std::string problem = counts(node, 1, tuple->elements().size(), 0); !problem.empty()) {
    return problem;
  }
  return firstOf(node.outputs().size(), [&](size_t i) {
    return arrives(fmt::format("output {}", i), tuple->elements()[i], node.outputs()[i]->type());
  });
}

std::string tupleIndex(const Node& node) {
  const auto tuple = tupleInput(node);
  if (!tuple) {
    return notATuple(node);
  }
  if (const std::string problem = counts(node, 2, 1, 0); !problem.empty()) {
    return problem;
  }
  if (const std::string problem = inputIs(node, 1, c10::IntType::get()); !problem.empty()) {
    return problem;
  }
  const Node& maker = *node.inputs()[1]->node();
  if (maker.kind() != c10::prim::Constant || !maker.hasAttribute(c10::attr::value) ||
      maker.kindOf(c10::attr::value) != AttributeKind::i) {
    return "";  // what it gives is seen only at run time
  }
  const int64_t size = static_cast<int64_t>(tuple->elements().size());
  const int64_t written = maker.i(c10::attr::value);
  if (written >= size || written < -size) {
    return fmt::format("index {} into a tuple of {}", written, size);
  }
  const size_t index = static_cast<size_t>(written < 0 ? written + size : written);
  return arrives("output 0", tuple->elements()[index], node.output()->type());
}

std::string tupleSlice(const Node& node) {
  const auto tuple = tupleInput(node);
  if (!tuple) {
    return notATuple(node);
  }
  if (const std::string problem = counts(node, std::nullopt, 1, 0); !problem.empty()) {
    return problem;
  }
  return node.output()->type()->kind() == c10::TypeKind::TupleType
             ? ""
             : "gives a tuple, but its output is " + writeType(*node.output()->type());
}

std::string dictConstruct(const Node& node) {
  if (const std::string problem = counts(node, std::nullopt, 1, 0); !problem.empty()) {
    return problem;
  }
  const auto dict = node.output()->type()->cast<c10::DictType>();
  if (!dict || node.inputs().size() % 2 != 0) {
    return fmt::format("makes a dict of keys and values, found {} inputs and an output of {}",
                       node.inputs().size(), writeType(*node.output()->type()));
  }
  return firstOf(node.inputs().size(), [&](size_t i) {
    return inputIs(node, i, i % 2 == 0 ? dict->getKeyType() : dict->getValueType());
  });
}

// ---- profiling and guards ----

std::string passOn(const Node& node) {
  if (const std::string problem = counts(node, node.outputs().size(), std::nullopt, 0); !problem.empty()) {
    return problem;
  }
  return firstOf(node.inputs().size(), [&](size_t i) { return inputIs(node, i, node.outputs()[i]->type()); });
}

// One tensor that is passed on, or the counter of runs, which has neither inputs nor outputs.
std::string profile(const Node& node) {
  if (node.inputs().empty() && node.outputs().empty()) {
    return counts(node, 0, 0, 0);
  }
  return first({[&] { return counts(node, 1, 1, 0); }, [&] { return passOn(node); },
                [&] { return hasAttribute(node, c10::attr::profiled_type, AttributeKind::ty, "a type"); }});
}

std::string profileValue(const Node& node) { return passOn(node); }

// Types to hold the inputs against; gives the inputs again, then whether all fit.
std::string guard(const Node& node) {
  const size_t count = node.inputs().size();
  return first(
      {[&] { return counts(node, std::nullopt, count + 1, 0); },
       [&] { return hasAttribute(node, c10::attr::types, AttributeKind::tys, "a list of types"); },
       [&]() -> std::string {
         return node.tys(c10::attr::types).size() == count
                    ? ""
                    : fmt::format("{} types for {} inputs", node.tys(c10::attr::types).size(), count);
       },
       [&] { return arrives("the last output", c10::BoolType::get(), node.outputs()[count]->type()); },
       [&] {
         return firstOf(count, [&](size_t i) { return inputIs(node, i, node.outputs()[i]->type()); });
       }});
}

// ---- others ----

std::string constant(const Node& node) { return constantProblem(node); }

std::string constantChunk(const Node& node) {
  return first({[&] { return counts(node, 1, std::nullopt, 0); },
                [&] { return inputIs(node, 0, c10::TensorType::get()); },
                [&] { return hasAttribute(node, c10::attr::chunks, AttributeKind::i, "an int"); },
                [&] { return hasAttribute(node, c10::attr::dim, AttributeKind::i, "an int"); },
                [&] { return counts(node, 1, static_cast<size_t>(node.i(c10::attr::chunks)), 0); }});
}

std::string isInstance(const Node& node) {
  return first({[&] { return counts(node, 1, 1, 0); },
                [&] { return hasAttribute(node, c10::attr::types, AttributeKind::tys, "a list of types"); },
                [&] { return arrives("output 0", c10::BoolType::get(), node.output()->type()); }});
}

std::string callFunction(const Node& node) {
  if (node.inputs().empty() || node.inputs()[0]->type()->kind() != c10::TypeKind::FunctionType) {
    return "takes the function to call as its first input";
  }
  if (isMissingFunction(*node.inputs()[0]->type())) {
    const Node& maker = *node.inputs()[0]->node();
    const bool named =
        maker.hasAttribute(c10::attr::name) && maker.kindOf(c10::attr::name) == AttributeKind::s;
    return fmt::format("calls '{}', a function that the text does not hold",
                       named ? maker.s(c10::attr::name) : "");
  }
  return counts(node, std::nullopt, 1, 0);
}

std::string onObject(const Node& node) {
  const bool object =
      !node.inputs().empty() && (node.inputs()[0]->type()->kind() == c10::TypeKind::ClassType ||
                                 node.inputs()[0]->type()->kind() == c10::TypeKind::InterfaceType);
  if (!object) {
    return "takes an object as its first input";
  }
  return hasAttribute(node, c10::attr::name, AttributeKind::s, "a string");
}

std::string oneOutput(const Node& node) { return counts(node, 0, 1, 0); }

std::string anything(const Node&) { return ""; }

std::string misplaced(const Node&) { return "stands among the nodes of a block"; }

using Rule = std::string (*)(const Node&);

const std::unordered_map<c10::Symbol, Rule>& rules() {
  static const std::unordered_map<c10::Symbol, Rule> table = {
#define FAULTLINE_STRUCTURE(kind, rule) {c10::kind, &rule},
#include "engine/ir/structure.def"
#undef FAULTLINE_STRUCTURE
  };
  return table;
}

}  // namespace

bool hasStructureRule(c10::Symbol kind) { return rules().count(kind) != 0; }

std::string structureProblem(const Node& node) { return rules().at(node.kind())(node); }

}  // namespace faultline
