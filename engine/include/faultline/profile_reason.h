// Why a field of an answer is not known, as data: most reasons are never shown, so the sentence is made when
// somebody asks.
#pragma once
#include <cstdint>
#include <string>

namespace torch::jit {
struct Node;
}

namespace faultline {

enum class ReasonKind : uint8_t {
#define PROFILE_REASON(kind, name, text) kind,
#include "faultline/profile_reasons.def"
};
const char* toString(ReasonKind kind);  // "never_ran"

struct ProfileReason {
  ReasonKind kind = ReasonKind::None;
  const torch::jit::Node* node = nullptr;
  std::string text() const;  // empty for None; reads the graph, which must not have changed since
};

}  // namespace faultline
