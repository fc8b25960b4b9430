#include "engine/profile/reason.h"

#include <fmt/format.h>
#include <torch/csrc/jit/ir/ir.h>

namespace faultline {
namespace {

std::string describeWriter(const torch::jit::Node* node) {
  if (node == nullptr) return "another node";
  std::string text = node->kind().toQualString();
  // The value that was written tells two writes of one op apart, and shows when it was a view.
  if (!node->inputs().empty())
    text += "(%" + node->input(0)->debugName() + (node->inputs().size() > 1 ? ", …)" : ")");
  return text;
}

}  // namespace

namespace profile {

ReasonId Reasons::of(ReasonKind kind, const torch::jit::Node* node) {
  ReasonId next = static_cast<ReasonId>(all_.size());
  if (kind == ReasonKind::EndedBy) {
    auto [it, fresh] = ended_.try_emplace(node, next);
    if (!fresh) return it->second;
  } else if (node == nullptr) {
    auto [it, fresh] = plain_.try_emplace(static_cast<int>(kind), next);
    if (!fresh) return it->second;
  }
  all_.push_back({kind, node});
  return next;
}

}  // namespace profile

const char* toString(ReasonKind kind) {
  constexpr const char* kNames[] = {
      "none",        "no_evidence",  "never_ran",   "varies",          "not_recorded", "ended_by",
      "no_grad",     "mode_unknown", "inside",      "list_written",    "container",    "opaque",
      "arm_unknown", "not_tensor",   "static_type", "shared_subgraph", "not_indexed"};
  return kNames[static_cast<size_t>(kind)];
}

std::string ProfileReason::text() const {
  switch (kind) {
    case ReasonKind::None:
      break;
    case ReasonKind::NotIndexed:
      return "not in the indexed graph";
    case ReasonKind::NoEvidence:
      return "no profile node speaks of it";
    case ReasonKind::NeverRan:
      return "the profile nodes that would speak of it never ran";
    case ReasonKind::Varies:
      return "varies between runs, arms or iterations";
    case ReasonKind::NotRecorded:
      return "the profile node does not say";
    case ReasonKind::EndedBy:
      return fmt::format("ended by {}", describeWriter(node));
    case ReasonKind::NoGrad:
      return "recorded under no_grad, where a 0 says nothing of the tensor";
    case ReasonKind::ModeUnknown:
      return "recorded where grad mode (no_grad or not) is not certain";
    case ReasonKind::Inside:
      return "recorded inside a running differentiable subgraph, which detaches its inputs";
    case ReasonKind::ListWritten:
      return fmt::format("the list is written by {}", describeWriter(node));
    case ReasonKind::Container:
      return "comes out of a container that cannot be followed";
    case ReasonKind::Opaque:
      return fmt::format("made by {}, which is opaque", describeWriter(node));
    case ReasonKind::ArmUnknown:
      return "one way into the join says nothing of it";
    case ReasonKind::NotTensor:
      return "not a tensor";
    case ReasonKind::StaticType:
      return "what was seen cannot have been this value: its static type excludes it";
    case ReasonKind::SharedSubgraph:
      return "the subgraph hangs on two nodes and cannot be told apart";
  }
  return {};
}

}  // namespace faultline
