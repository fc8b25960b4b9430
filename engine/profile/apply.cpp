// From answers to gradients that are left out: requires_grad per operand, by position, since the compiler
// works on a copy of its own.
#include "engine/profile/apply.h"

#include <fmt/format.h>
#include <torch/csrc/jit/passes/inliner.h>

#include "engine/autodiff/gradient.h"
#include "engine/graph_break/guarded.h"
#include "engine/ir/walk.h"
#include "engine/profile/analysis.h"
#include "engine/profile/explain.h"
#include "faultline/ir.h"
#include "faultline/profile.h"

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
  takeFallbacks(*copy->block());
  inlineSubgraphs(*copy);
  torch::jit::Inline(*copy);
  const Analysis analysis(*copy);
  KnownGradients known;
  forEachNode(copy->block(), [&](const torch::jit::Node* node) {
    if (isTransparent(node) || node->kind() == torch::jit::prim::profile) return;
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
  });
  return known;
}

}  // namespace profile

namespace {

Result<CompiledGraph> specialised(const std::shared_ptr<Graph>& graph, const BreakPlan& plan,
                                  ApplyReport& report) {
  const KnownGradients known = profile::knownGradients(*graph);
  return compileSpecialised(graph, plan, {known, Guard::Flags}, report);
}

Result<std::shared_ptr<Graph>> assuming(const Graph& graph, const ApplyGuard& guard) {
  if (!guard.holds) return fail(ErrorKind::Invalid, fmt::format("guard '{}' has no predicate", guard.name));
  auto copy = copyGraph(graph);
  for (const auto& [name, type] : guard.assume) {
    const auto value = copy->debugNames().find(name);
    if (value == copy->debugNames().end())
      return fail(ErrorKind::Invalid, fmt::format("guard '{}': there is no value %{}", guard.name, name));
    if (type == nullptr || !setProfile(value->second, type))
      return fail(ErrorKind::Invalid,
                  fmt::format("guard '{}': that cannot be assumed of %{}", guard.name, name));
  }
  return copy;
}

}  // namespace

void AppliedProfile::run(torch::jit::Stack& stack) const {
  for (const GuardedProfile& guarded : guarded_) {
    if (guarded.guard.holds(stack)) return guarded.compiled.run(stack);
  }
  compiled_.run(stack);
}

Result<AppliedProfile> applyProfile(std::shared_ptr<Graph> graph, const ApplyOptions& options) {
  auto plan = planBreaks(*graph, options.policy);
  if (!plan) return tl::make_unexpected(plan.error());
  ApplyReport report;
  auto compiled = specialised(graph, *plan, report);
  if (!compiled) return tl::make_unexpected(compiled.error());
  std::vector<GuardedProfile> guarded;
  for (const ApplyGuard& guard : options.guards) {
    const auto assumed = assuming(*graph, guard);
    if (!assumed) return tl::make_unexpected(assumed.error());
    ApplyReport own;
    auto version = specialised(*assumed, *plan, own);
    if (!version) return tl::make_unexpected(version.error());
    guarded.push_back({guard, std::move(*version), std::move(own)});
  }
  return AppliedProfile(std::move(*compiled), std::move(report), std::move(guarded));
}

}  // namespace faultline
