// Why a field is not known, as data: most reasons are never shown, so the sentence is made when somebody
// asks.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch::jit {
struct Node;
}

namespace faultline::profile {

using ReasonId = int32_t;
constexpr ReasonId kNoReason = -1;

enum class ReasonKind : uint8_t {
  NoEvidence,   // no profile node speaks of the value
  NeverRan,     // all profile nodes that would speak of it are unseen
  Varies,       // runs, arms or nodes differ
  NotRecorded,  // the node says nothing of this field
  EndedBy,      // node: the write
  NoGrad,       // a 0 recorded where grad mode was off
  ModeUnknown,  // a 0 recorded where grad mode is not certain; node: what set it, or nullptr
  Inside,       // recorded inside a running differentiable subgraph, which detaches its inputs
  ListWritten,  // node: the write
  Container,    // comes out of a container that cannot be followed
  Opaque,       // node: its results are not followed
  ArmUnknown,   // one way into a join says nothing; node: the join
  NotTensor,
  StaticType,      // the evidence is of executions that did not come by: the static type excludes it
  SharedSubgraph,  // the subgraph hangs on two nodes: what holds for one call need not for the other
};

struct Reason {
  ReasonKind kind = ReasonKind::NoEvidence;
  const torch::jit::Node* node = nullptr;
};

class Reasons {
 public:
  ReasonId of(ReasonKind kind, const torch::jit::Node* node = nullptr);
  const Reason& operator[](ReasonId id) const { return all_[static_cast<size_t>(id)]; }
  std::string text(ReasonId id) const;  // empty for kNoReason

 private:
  std::vector<Reason> all_;
  std::unordered_map<const torch::jit::Node*, ReasonId> ended_;  // the one kind that comes in numbers
  std::unordered_map<int, ReasonId> plain_;
};

}  // namespace faultline::profile
