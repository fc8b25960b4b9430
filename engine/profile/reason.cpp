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

namespace {

struct ReasonRow {
  const char* name;
  const char* text;
};

constexpr ReasonRow kReasons[] = {
#define PROFILE_REASON(kind, name, text) {name, text},
#include "faultline/profile_reasons.def"
};

}  // namespace

const char* toString(ReasonKind kind) { return kReasons[static_cast<size_t>(kind)].name; }

std::string ProfileReason::text() const {
  return fmt::format(fmt::runtime(kReasons[static_cast<size_t>(kind)].text), describeWriter(node));
}

}  // namespace faultline
