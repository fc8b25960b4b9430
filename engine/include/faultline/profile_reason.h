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
  None,         // it is known
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
  NotIndexed,      // the node that asks does not stand in the indexed graph
};
const char* toString(ReasonKind kind);  // "never_ran"

struct ProfileReason {
  ReasonKind kind = ReasonKind::None;
  const torch::jit::Node* node = nullptr;
  std::string text() const;  // empty for None; reads the graph, which must not have changed since
};

}  // namespace faultline
