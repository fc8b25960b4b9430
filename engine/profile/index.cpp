// ProfileIndex and the free functions that ask one question: answers in the words of the public header.
#include <fmt/format.h>

#include "engine/profile/analysis.h"
#include "engine/profile/explain.h"
#include "engine/support/check.h"
#include "faultline/profile.h"

namespace faultline {
namespace {

using profile::Analysis;
using profile::Answer;
using profile::Cell;
using profile::CellState;
using profile::Fact;

FieldState stateOf(const Cell& cell) {
  switch (cell.state) {
    case CellState::Value:
      return FieldState::Value;
    case CellState::Varies:
      return FieldState::Varies;
    case CellState::Ended:
      return FieldState::Ended;
    case CellState::Neutral:
    case CellState::Nothing:
      return FieldState::Nothing;
  }
  return FieldState::Nothing;
}

template <class T, class Decode>
void fill(ProfileField<T>& field, const Cell& cell, const profile::Reasons& reasons, Decode decode) {
  field.state = stateOf(cell);
  if (cell.known()) {
    field.value = decode(cell.value);
  } else {
    field.why = profile::whyUnknown(cell, reasons);
  }
}

// Every field of a defined tensor, or that there is no tensor.
bool isConcrete(const Fact& fact) {
  if (fact.defined.known() && fact.defined.value == 0) return true;
  return !anyCell(fact, profile::kAllFields, [](const Cell& cell) { return !cell.known(); });
}

ProfileState stateOf(const Fact& fact, const profile::Reasons& reasons) {
  bool known = false;
  bool varies = false;
  bool unseen = false;
  anyCell(fact, profile::kAllFields, [&](const Cell& cell) {
    known = known || cell.known();
    varies = varies || cell.state == CellState::Varies;
    unseen = unseen || (cell.reason != profile::kNoReason &&
                        reasons[cell.reason].kind == ReasonKind::NeverRan && !cell.speaks());
    return false;
  });
  if (known) return isConcrete(fact) ? ProfileState::Concrete : ProfileState::Partial;
  if (varies) return ProfileState::Varies;
  return unseen ? ProfileState::Unseen : ProfileState::Unknown;
}

int64_t same(int64_t value) { return value; }

// The graph a node stands in, as seen from the top: a subgraph does not know who calls it.
const Graph& graphOf(const Node* node) { return *node->owningGraph(); }

}  // namespace

const char* toString(ProfileState state) {
  switch (state) {
    case ProfileState::Unknown:
      return "unknown";
    case ProfileState::Unseen:
      return "unseen";
    case ProfileState::Varies:
      return "varies";
    case ProfileState::Partial:
      return "partial";
    case ProfileState::Concrete:
      return "concrete";
  }
  return "unknown";
}

struct ProfileIndex::Impl {
  explicit Impl(const Graph& graph) : analysis(graph) {
    const auto& steps = analysis.program().steps();
    first.assign(steps.size(), -1);
    answers.reserve(2 * steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      // Who asks what a profile node was fed with is rare.
      if (!profile::readsOperands(steps[i].kind) || steps[i].transparent) continue;
      first[i] = static_cast<int32_t>(answers.size());
      const int32_t step = static_cast<int32_t>(i);
      const size_t inputs = analysis.objects().operandCount(step);
      for (size_t k = 0; k < inputs; ++k) {
        const bool tensor = analysis.objects().operands(step)[k].ref.kind == profile::RefKind::Tensor;
        answers.push_back(tensor ? analysis.answer(step, k) : Answer{});
        if (tensor) analysis.typeOf(answers.back().fact);
      }
    }
  }

  Answer answer(const Use& use, int32_t step) const {
    FAULTLINE_CHECK(use.offset < analysis.objects().operandCount(step), "a use names an input of its user");
    const int32_t begin = first[static_cast<size_t>(step)];
    if (begin >= 0 && answers[static_cast<size_t>(begin) + use.offset].fact != profile::kNoFact)
      return answers[static_cast<size_t>(begin) + use.offset];
    return analysis.answer(step, use.offset);
  }

  ProfileState stateOf(profile::FactId fact) const {
    if (static_cast<size_t>(fact) >= states.size()) states.resize(analysis.pool().size());
    auto& known = states[static_cast<size_t>(fact)];
    if (!known) known = faultline::stateOf(analysis.pool()[fact], analysis.reasons());
    return *known;
  }

  void fillIn(ProfileLookup& result, const Answer& answer) const {
    const Fact& fact = analysis.pool()[answer.fact];
    const profile::Reasons& reasons = analysis.reasons();
    fill(result.defined, fact.defined, reasons, [](int64_t v) { return v != 0; });
    fill(result.dtype, fact.dtype, reasons, [](int64_t v) { return static_cast<at::ScalarType>(v); });
    fill(result.device, fact.device, reasons, profile::decodeDevice);
    fill(result.rank, fact.rank, reasons, [](int64_t v) { return static_cast<size_t>(v); });
    fill(result.requires_grad, fact.requires_grad, reasons, [](int64_t v) { return v != 0; });
    result.sizes.resize(fact.sizes.size());
    result.strides.resize(fact.strides.size());
    for (size_t i = 0; i < fact.sizes.size(); ++i) fill(result.sizes[i], fact.sizes[i], reasons, same);
    for (size_t i = 0; i < fact.strides.size(); ++i) fill(result.strides[i], fact.strides[i], reasons, same);
    result.state = stateOf(answer.fact);
    result.conditional = answer.conditional;
    result.type = analysis.typeOf(answer.fact);
    if (result.type != nullptr) return;
    for (const ProfileReason& why : {result.dtype.why, result.rank.why, result.requires_grad.why}) {
      if (result.why_not.kind == ReasonKind::None) result.why_not = why;
    }
  }

  // -1, and why in the result, for a use that is not in the graph.
  int32_t stepOf(const Use& use, ProfileLookup& result) const {
    const int32_t step = analysis.program().stepOf(use.user);
    if (step < 0) {
      const bool shared = analysis.program().isShared(use.user->owningGraph());
      result.why_not.kind = shared ? ReasonKind::SharedSubgraph : ReasonKind::NotIndexed;
    }
    return step;
  }

  Analysis analysis;
  std::vector<int32_t> first;   // per step: where the answers of its uses begin; -1: not asked ahead
  std::vector<Answer> answers;  // without a fact: not a tensor
  mutable std::vector<std::optional<ProfileState>> states;  // per fact, made when first asked for
};

ProfileIndex::ProfileIndex(const Graph& graph) : impl_(std::make_unique<Impl>(graph)) {}
ProfileIndex::~ProfileIndex() = default;
ProfileIndex::ProfileIndex(ProfileIndex&&) noexcept = default;
ProfileIndex& ProfileIndex::operator=(ProfileIndex&&) noexcept = default;

ProfileLookup ProfileIndex::lookup(const Use& use) const {
  ProfileLookup result;
  const int32_t step = impl_->stepOf(use, result);
  if (step >= 0) impl_->fillIn(result, impl_->answer(use, step));
  return result;
}

ProfileExplanation ProfileIndex::explain(const Use& use) const {
  const Analysis& analysis = impl_->analysis;
  ProfileExplanation result;
  const int32_t step = impl_->stepOf(use, result);
  if (step < 0) return result;
  const Answer answer = impl_->answer(use, step);
  impl_->fillIn(result, answer);
  const Value* value = use.user->input(use.offset);
  const profile::Provenance provenance = profile::explain(analysis, value, step, answer);
  for (const Node* node : provenance.evidence) result.from.push_back(const_cast<Node*>(node));
  if (provenance.place != nullptr) result.place = provenance.place;
  result.node = const_cast<Node*>(profile::nodeSaying(analysis, value, answer, provenance));
  return result;
}

ProfileKnown ProfileIndex::known(const Use& use) const {
  const Analysis& analysis = impl_->analysis;
  const int32_t step = analysis.program().stepOf(use.user);
  if (step < 0) return {};
  const Answer answer = impl_->answer(use, step);
  return {analysis.typeOf(answer.fact), answer.conditional};
}

Node* ProfileIndex::retrieve(const Use& use) const {
  const Analysis& analysis = impl_->analysis;
  const int32_t step = analysis.program().stepOf(use.user);
  if (step < 0) return nullptr;
  const Value* value = use.user->input(use.offset);
  const Answer answer = impl_->answer(use, step);
  if (analysis.typeOf(answer.fact) == nullptr) return nullptr;
  return const_cast<Node*>(
      profile::nodeSaying(analysis, value, answer, profile::explain(analysis, value, step, answer)));
}

ProfileExplanation lookupProfile(const Use& use) { return ProfileIndex(graphOf(use.user)).explain(use); }

Node* retrieveProfileInformation(Use use) { return ProfileIndex(graphOf(use.user)).retrieve(use); }

}  // namespace faultline
