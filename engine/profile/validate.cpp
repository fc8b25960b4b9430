// What is wrong with the profile nodes of a graph, as findings that say what to do.
#include <fmt/format.h>

#include "engine/profile/explain.h"
#include "engine/support/check.h"
#include "faultline/ir.h"
#include "faultline/profile.h"

namespace faultline {
namespace {

using profile::Analysis;
using profile::Answer;
using profile::Cell;
using profile::CellState;
using profile::Evidence;
using profile::Fact;
using profile::FactId;
using profile::Flow;
using profile::Step;

enum class Kind {
#define FINDING(kind, what, advice) kind,
#include "engine/profile/findings.def"
};

struct Row {
  const char* name;
  const char* what;
  const char* advice;
};

const Row& rowOf(Kind kind) {
  static const Row rows[] = {
#define FINDING(kind, what, advice) {#kind, what, advice},
#include "engine/profile/findings.def"
  };
  return rows[static_cast<size_t>(kind)];
}

std::string nameOf(const Value* value) { return "%" + value->debugName(); }

std::string describe(const Node* node) {
  const c10::TensorTypePtr type = profile::profiledType(node);
  std::string text = type == nullptr ? "no type" : type->str();
  if (!node->inputs().empty()) text += " on " + nameOf(node->input(0));
  return text;
}

struct Findings {
  std::vector<ProfileFinding> all;
  void add(Kind kind, const Node* node, const Value* value, const std::string& detail) {
    const Row& row = rowOf(kind);
    all.push_back({row.name, node, value, fmt::format("{}: {}; {}", row.what, detail, row.advice)});
  }
};

// `outer` ran whenever `inner` did. In one block both ran equally often, and only two values contradict; from
// an enclosing block the outer fact must contain the inner one.
bool contradicts(const Cell& outer, const Cell& inner, bool one_block) {
  if (!outer.known()) return false;
  if (inner.known()) return inner.value != outer.value;
  return inner.state == CellState::Varies && !one_block;
}

bool contradicts(const Fact& outer, const Fact& inner, bool one_block) {
  if (contradicts(outer.defined, inner.defined, one_block) ||
      contradicts(outer.dtype, inner.dtype, one_block) ||
      contradicts(outer.device, inner.device, one_block) || contradicts(outer.rank, inner.rank, one_block) ||
      contradicts(outer.requires_grad, inner.requires_grad, one_block)) {
    return true;
  }
  for (size_t i = 0; i < outer.sizes.size() && outer.sizes.size() == inner.sizes.size(); ++i) {
    if (contradicts(outer.sizes[i], inner.sizes[i], one_block)) return true;
  }
  for (size_t i = 0; i < outer.strides.size() && outer.strides.size() == inner.strides.size(); ++i) {
    if (contradicts(outer.strides[i], inner.strides[i], one_block)) return true;
  }
  return false;
}

// Nodes of one tensor in one epoch: each against those that dominate it, nearest first, until one disagrees.
// Fields that a nearer node left open are held against the next one, so a chain is compared as a whole.
void findContradictions(const Analysis& analysis, Findings& findings) {
  std::set<std::pair<const Node*, const Node*>> reported;
  for (const auto& flow : analysis.flows()) {
    for (const profile::State& state : flow->states()) {
      for (int32_t index : state.evidence) {
        const Evidence& inner = flow->evidence()[static_cast<size_t>(index)];
        if (inner.node == nullptr || !flow->pool().speaks(inner.fact)) continue;
        int32_t outer_index = inner.before;
        while (outer_index >= 0) {
          const Evidence& outer = flow->evidence()[static_cast<size_t>(outer_index)];
          outer_index = outer.before;
          if (outer.node == nullptr || !flow->pool().speaks(outer.fact)) continue;
          if (outer.fact == inner.fact) break;  // the chain above it was compared when it was the inner one
          const bool one_block = outer.control == inner.control;
          const bool clash = contradicts(flow->pool()[outer.fact], flow->pool()[inner.fact], one_block);
          if (clash && reported.emplace(outer.node, inner.node).second) {
            const bool boundary = outer.node->owningGraph() != inner.node->owningGraph();
            findings.add(boundary ? Kind::boundary : Kind::contradiction, inner.node, inner.node->input(),
                         fmt::format("{} against {}", describe(outer.node), describe(inner.node)));
          }
          if (clash || flow->pool().complete(outer.fact, flow->fields())) break;
        }
      }
    }
  }
}

void checkNode(const Analysis& analysis, int32_t index, ValidateOptions options, Findings& findings) {
  const Node* node = analysis.program().step(index).node;
  if (profile::isCounter(node)) {
    if (options.about_to_run)
      findings.add(Kind::counter, node, nullptr, "it counts the runs still to be profiled");
    return;
  }
  if (!analysis.program().step(index).profile) {
    findings.add(Kind::wrong_arity, node, node->inputs().empty() ? nullptr : node->input(0),
                 fmt::format("{} inputs and {} outputs", node->inputs().size(), node->outputs().size()));
    return;
  }
  const profile::ProfileNode& read = analysis.profileNodeAt(index);
  if (read.literal == profile::kNoFact) {
    findings.add(Kind::missing_type, node, node->input(), "on " + nameOf(node->input()));
    return;
  }
  if (profile::excludes(*node->input()->type(), analysis.pool()[read.literal])) {
    findings.add(Kind::static_type, node, node->input(),
                 fmt::format("{} of static type {}", describe(node), node->input()->type()->str()));
  }
}

}  // namespace

std::vector<ProfileFinding> findProfileViolations(const Graph& graph, ValidateOptions options) {
  const Analysis analysis(graph);
  Findings findings;
  const int32_t count = static_cast<int32_t>(analysis.program().steps().size());
  for (int32_t i = 0; i < count; ++i) {
    const Step& step = analysis.program().step(i);
    if (step.profile || step.irregular) checkNode(analysis, i, options, findings);
    if (!profile::readsOperands(step.kind)) continue;
    if (step.transparent) continue;
    const size_t inputs = analysis.objects().operandCount(i);
    for (size_t offset = 0; offset < inputs; ++offset) {
      if (analysis.objects().operands(i)[offset].ref.kind != profile::RefKind::Tensor) continue;
      const Answer answer = analysis.answer(i, offset);
      const c10::TensorTypePtr& type = analysis.typeOf(answer.fact);
      if (type == nullptr || profile::feedSays(analysis, i, offset, answer)) continue;
      const Value* value = step.node->input(offset);
      findings.add(
          Kind::not_at_feed, step.node, value,
          fmt::format("{} in {} is {}", nameOf(value), step.node->kind().toQualString(), type->str()));
    }
  }
  findContradictions(analysis, findings);
  return std::move(findings.all);
}

bool validateProfileNode(std::shared_ptr<Graph> graph) {
  FAULTLINE_CHECK(graph != nullptr, "validateProfileNode needs a graph");
  return findProfileViolations(*graph).empty();
}

}  // namespace faultline
