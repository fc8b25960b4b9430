// From answers to gradients that are left out: requires_grad per operand, by position, since the compiler
// works on a copy of its own.
#include "engine/profile/apply.h"
#include "engine/profile/explain.h"

#include <torch/csrc/jit/passes/inliner.h>

#include "engine/autodiff/gradient.h"
#include "engine/profile/analysis.h"
#include "faultline/ir.h"

namespace faultline {

namespace profile {

namespace {

std::optional<int64_t> bytesKnown(const Fact& fact) {
  if (!fact.dtype.known() || !fact.rank.known()) return std::nullopt;
  int64_t bytes = static_cast<int64_t>(c10::elementSize(static_cast<c10::ScalarType>(fact.dtype.value)));
  for (const Cell& size : fact.sizes) {
    if (!size.known()) return std::nullopt;
    bytes *= size.value;
  }
  return bytes;
}

}  // namespace

KnownGradients knownGradients(const torch::jit::Graph& graph) {
  // The same steps as the compiler's, but for the profile nodes.
  auto copy = copyGraph(graph);
  inlineSubgraphs(*copy);
  torch::jit::Inline(*copy);
  const Analysis analysis(*copy);
  KnownGradients known;
  for (const torch::jit::Node* node : copy->nodes()) {
    if (isTransparent(node) || node->kind() == torch::jit::prim::profile) continue;
    const int32_t step = analysis.program().stepOf(node);
    known.emplace_back(node->inputs().size());
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Answer answer = analysis.answer(step, i);
      const Fact& fact = analysis.pool()[answer.fact];
      const Cell& cell = fact.requires_grad;
      KnownGradient& operand = known.back()[i];
      operand.bytes = bytesKnown(fact);
      if (cell.known()) {
        operand.requires_grad = cell.value != 0;
      } else {
        operand.why = whyUnknown(cell, analysis.reasons()).text();
      }
    }
  }
  return known;
}

}  // namespace profile

Result<AppliedProfile> applyProfile(std::shared_ptr<Graph> graph, const ApplyOptions& options) {
  auto plan = planBreaks(*graph, options.policy);
  if (!plan) return tl::make_unexpected(plan.error());
  ApplyReport report;
  const KnownGradients known = profile::knownGradients(*graph);
  auto compiled = compileSpecialised(std::move(graph), *plan, {known, Guard::Flags}, report);
  if (!compiled) return tl::make_unexpected(compiled.error());
  return AppliedProfile(std::move(*compiled), std::move(report));
}

}  // namespace faultline
