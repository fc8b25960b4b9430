// For passes that make values, or replace them: what is known of a value, said by a node at its maker.
#include "engine/profile/analysis.h"
#include "engine/profile/object_builder.h"
#include "engine/support/check.h"
#include "faultline/profile.h"

namespace faultline {
namespace {

namespace prim = torch::jit::prim;

using profile::Analysis;
using profile::Cell;
using profile::CellState;
using profile::Fact;
using profile::FlowProgram;

bool canSay(const Value* value, const Fact& fact) {
  return profile::isTensorLike(value->type()) && profile::typeOf(fact) != nullptr &&
         !profile::excludes(*value->type(), fact);
}

// What was said of `value` at its nodes goes, clones included; their users read the value.
void dropNodesOf(Value* value) {
  std::vector<Node*> nodes;
  for (const Use& use : value->uses()) {
    if (profile::isProfile(use.user)) nodes.push_back(use.user);
  }
  for (Node* node : nodes) {
    node->output()->replaceAllUsesWith(value);
    node->destroy();
  }
}

void say(Value* value, const Fact& fact) {
  dropNodesOf(value);
  Node* maker = value->node();
  Graph& graph = *value->owningGraph();
  Node* node = graph.create(prim::profile, {value}, 1);
  node->output()->setType(value->type());
  profile::writeFact(node, fact, profile::typeOf(fact));
  if (fact.requires_grad.known()) node->i_(profile::mark::raw(), 1);
  if (maker->kind() == prim::Param) {
    node->insertBefore(*maker->owningBlock()->nodes().begin());
  } else {
    node->insertAfter(maker);
  }
  value->replaceAllUsesAfterNodeWith(node, node->output());
}

Fact statedFact(const c10::TensorType& type) {
  Fact fact;
  const auto known = [](Cell& cell, int64_t value) {
    cell = {CellState::Value, true, profile::kNoReason, value};
  };
  if (type.undefined() == true) {
    known(fact.defined, 0);
    return fact;
  }
  if (type.scalarType() || type.device() || type.dim()) known(fact.defined, 1);
  if (type.scalarType()) known(fact.dtype, static_cast<int64_t>(*type.scalarType()));
  if (type.device()) known(fact.device, profile::encodeDevice(*type.device()));
  if (type.requiresGrad()) known(fact.requires_grad, *type.requiresGrad() ? 1 : 0);
  if (!type.dim()) return fact;
  const size_t rank = *type.dim();
  known(fact.rank, static_cast<int64_t>(rank));
  fact.sizes.resize(rank);
  fact.strides.resize(rank);
  const auto sizes = type.sizes();
  const auto strides = type.strides();
  for (size_t i = 0; i < rank; ++i) {
    if (sizes[i]) known(fact.sizes[i], *sizes[i]);
    if (strides.size() == rank && strides[i]) known(fact.strides[i], *strides[i]);
  }
  return fact;
}

// What is known for certain where `value` has just been made.
Fact factAtMaker(const Analysis& analysis, const Value* value) {
  Fact fact;
  const profile::Ref ref = analysis.objects().ref(value);
  if (ref.kind != profile::RefKind::Tensor) return fact;
  const profile::Root& root = analysis.objects().roots()[static_cast<size_t>(ref.id)];
  const int32_t step = analysis.program().stepOf(value->node());
  const profile::Pos at = step < 0 ? root.birth : FlowProgram::after(step);
  for (const auto& flow : analysis.flows())
    fact = profile::overlay(fact, analysis.pool()[flow->answer(ref.id, at)], flow->fields());
  profile::forEachCell(fact, profile::kAllFields, [](Cell& cell) {
    if (!cell.known() || !cell.covers) cell = Cell{};
  });
  return fact;
}

profile::GradMode modeAtMaker(const Analysis& analysis, const Value* value) {
  const int32_t step = analysis.program().stepOf(value->node());
  return step < 0 ? profile::GradMode::On : analysis.modes().at(step);
}

}  // namespace

bool setProfile(Value* value, const c10::TensorTypePtr& type) {
  FAULTLINE_CHECK(value != nullptr && type != nullptr, "setProfile needs a value and a type");
  const Fact fact = statedFact(*type);
  if (!canSay(value, fact)) return false;
  say(value, fact);
  return true;
}

bool transferProfile(Value* from, Value* to) {
  FAULTLINE_CHECK(from != nullptr && to != nullptr, "transferProfile needs two values");
  FAULTLINE_CHECK(from->owningGraph() == to->owningGraph(), "transferProfile works within one graph");
  Fact fact;
  {
    const Analysis analysis(*from->owningGraph());
    fact = factAtMaker(analysis, from);
    // What a result gets of its operands' gradients is for the mode to say.
    const profile::GradMode mode = modeAtMaker(analysis, from);
    if (mode == profile::GradMode::Unknown || mode != modeAtMaker(analysis, to)) fact.requires_grad = Cell{};
  }
  if (!canSay(to, fact)) return false;
  say(to, fact);
  return true;
}

}  // namespace faultline
