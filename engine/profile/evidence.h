// Profile nodes as evidence: which nodes are profile nodes, what one says, and how an answer is written on
// one.
//
// Marks are attributes of ours on stock prim::profile nodes; engine/profile/README.md says what each means.
#pragma once
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/ir/ir.h>

#include "engine/profile/fact.h"

namespace faultline::profile {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

namespace mark {
c10::Symbol clone();        // i: made by propagate; answers, never evidence
c10::Symbol conditional();  // i: on a clone whose evidence does not cover the use
c10::Symbol inside();       // i: recorded while a differentiable subgraph ran
c10::Symbol raw();          // i: requires_grad is that of the tensor, whatever the grad mode
c10::Symbol fields();       // ss: the fields the node speaks of; without it a stock node speaks of all
}  // namespace mark

// prim::profile with one input and one output. Other shapes are counters or findings.
bool isProfile(const Node* node);
bool isClone(const Node* node);
bool isCounter(const Node* node);        // prim::profile without input and output
bool isProfileIValue(const Node* node);  // any number of pairs
// A profile node of ours or of libtorch whose only effect is to look at its input.
bool isTransparent(const Node* node);

// Which marks stand on a profile node. Asking libtorch for one attribute of ours takes a lock; this asks
// once.
struct Marks {
  bool typed = false;  // has an attribute profiled_type, of whatever kind
  bool clone = false, conditional = false, inside = false, raw = false, fields = false;
  bool any() const { return clone || conditional || inside || raw || fields; }
};
Marks marksOf(const Node* node);

// The profiled type, nullptr where the node has none. A profiled Optional[Tensor] type gives its element.
c10::TensorTypePtr profiledType(const Node* node);
// The node was never executed: no field and no marks that say otherwise.
bool isUnseen(const Node* node);
bool isUnseen(const Marks& marks, const c10::TensorTypePtr& type);

enum class GradMode : uint8_t { Off, On, Unknown };

// What `node` says of its input. `mode` is the grad mode at the node: a recorded 0 counts only where it is
// On. An unseen node gives Neutral in every field; a node without a type gives Nothing.
Fact factOf(const Node* node, GradMode mode, Reasons& reasons);
Fact factOf(const Node* node, const Marks& marks, const c10::TensorTypePtr& type, GradMode mode,
            Reasons& reasons);
// The type and fields as they stand on the node, without judging them.
Fact literalFact(const Node* node);
Fact literalFact(const Node* node, const Marks& marks, const c10::TensorTypePtr& type);

// Do both know the same fields with the same values? Says nothing of why others are not known.
bool sameValues(const Fact& a, const Fact& b);

// The known fields as a type; nullptr when none is known.
c10::TensorTypePtr typeOf(const Fact& fact);
// Writes the known fields of `fact` on a profile node: type, and the fields mark where the type alone could
// say more.
void writeFact(Node* node, const Fact& fact, const c10::TensorTypePtr& type);

// Does a value's static type exclude what was profiled?
bool excludes(const c10::Type& type, const Fact& fact);

}  // namespace faultline::profile
