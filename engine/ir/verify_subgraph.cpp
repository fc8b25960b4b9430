#include <fmt/format.h>

#include "engine/ir/verify_checks.h"
#include "engine/ir/verify_rules.h"
#include "faultline/ir.h"

namespace faultline {
namespace {

using torch::jit::AttributeKind;

std::string subgraphInputs(const Node& node, const Graph& body) {
  if (body.inputs().size() != node.inputs().size()) {
    return fmt::format("{} inputs, its subgraph has {}", node.inputs().size(), body.inputs().size());
  }
  return firstOf(node.inputs().size(), [&](size_t i) { return inputIs(node, i, body.inputs()[i]->type()); });
}

// A differentiated node gives the first f_real_outputs values; the backward graph takes the others.
std::string subgraphOutputs(const Node& node, const Graph& body) {
  const bool differentiated = node.hasAttribute(c10::attr::f_real_outputs) &&
                              node.kindOf(c10::attr::f_real_outputs) == AttributeKind::i;
  const int64_t given =
      differentiated ? node.i(c10::attr::f_real_outputs) : static_cast<int64_t>(body.outputs().size());
  if (given < 0 || static_cast<size_t>(given) > body.outputs().size()) {
    return fmt::format("f_real_outputs={}, but its subgraph returns {}", given, body.outputs().size());
  }
  if (static_cast<size_t>(given) != node.outputs().size()) {
    return fmt::format("{} outputs, its subgraph returns {}", node.outputs().size(), given);
  }
  return firstOf(node.outputs().size(), [&](size_t i) {
    return arrives(fmt::format("return {} of its subgraph (%{})", i, body.outputs()[i]->debugName()),
                   body.outputs()[i]->type(), node.outputs()[i]->type());
  });
}

std::string listSize(const Node& node, const char* name, size_t& total) {
  const c10::Symbol symbol = c10::Symbol::attr(name);
  if (!node.hasAttribute(symbol) || node.kindOf(symbol) != AttributeKind::is) {
    return fmt::format("has a ReverseSubgraph, but no list '{}'", name);
  }
  total += node.is(symbol).size();
  return "";
}

std::string reverseProblem(const Node& node) {
  if (!node.hasAttribute(c10::attr::ReverseSubgraph)) {
    return "";
  }
  if (node.kindOf(c10::attr::ReverseSubgraph) != AttributeKind::g ||
      node.g(c10::attr::ReverseSubgraph) == nullptr) {
    return "its ReverseSubgraph is no graph";
  }
  const Graph& backward = *node.g(c10::attr::ReverseSubgraph);
  size_t inputs = 0;
  size_t outputs = 0;
  return first({[&] { return listSize(node, "df_input_vjps", inputs); },
                [&] { return listSize(node, "df_input_captured_inputs", inputs); },
                [&] { return listSize(node, "df_input_captured_outputs", inputs); },
                [&] { return listSize(node, "df_output_vjps", outputs); },
                [&]() -> std::string {
                  return backward.inputs().size() == inputs
                             ? ""
                             : fmt::format("its ReverseSubgraph takes {} values, the attributes name {}",
                                           backward.inputs().size(), inputs);
                }});
}

// The body of a fork runs later; what it returns comes out of the Future.
std::string forkOutputs(const Node& node, const Graph& body) {
  if (node.outputs().size() != 1 || body.outputs().size() != 1) {
    return "a fork has one output, and so has its body";
  }
  const c10::TypePtr& type = node.output()->type();
  const bool deferred = type->kind() == c10::TypeKind::FutureType || type->kind() == c10::TypeKind::AwaitType;
  if (!deferred) {
    return "gives a Future, but its output is " + writeType(*type);
  }
  return arrives("what its body returns", body.outputs()[0]->type(), type->containedTypes()[0]);
}

}  // namespace

bool isSubgraphKind(c10::Symbol kind) {
  static const std::unordered_set<c10::Symbol> kinds = {c10::prim::DifferentiableGraph,
                                                        c10::prim::FusionGroup,
                                                        c10::prim::CudaFusionGroup,
                                                        c10::prim::oneDNNFusionGroup,
                                                        c10::prim::TensorExprGroup,
                                                        c10::prim::TensorExprDynamicGroup,
                                                        c10::prim::StaticSubgraph,
                                                        c10::prim::FunctionalGraph,
                                                        c10::prim::FallbackGraph,
                                                        c10::prim::MKLDNNGroup,
                                                        c10::prim::fork,
                                                        c10::prim::awaitable};
  return kinds.count(kind) != 0;
}

std::string subgraphProblem(const Node& node) {
  if (!node.hasAttribute(c10::attr::Subgraph) || node.kindOf(c10::attr::Subgraph) != AttributeKind::g ||
      node.g(c10::attr::Subgraph) == nullptr) {
    return "needs a graph as attribute 'Subgraph'";
  }
  // Bailouts carry the rest of the program; what it takes and gives is not what the node does.
  if (node.kind() == c10::prim::BailOut || node.kind() == c10::prim::BailoutTemplate) {
    return "";
  }
  const Graph& body = *node.g(c10::attr::Subgraph);
  const bool deferred = node.kind() == c10::prim::fork || node.kind() == c10::prim::awaitable;
  return first({[&] { return counts(node, std::nullopt, std::nullopt, 0); },
                [&] { return subgraphInputs(node, body); },
                [&] { return deferred ? forkOutputs(node, body) : subgraphOutputs(node, body); },
                [&] { return reverseProblem(node); }});
}

}  // namespace faultline
