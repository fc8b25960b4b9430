// Which values are the same tensor object, what joins make new ones, and which writes may reach them.
//
// A root is one object per execution of the place that makes it: all values that are certainly that object
// share it (profile nodes, casts, results of in-place ops, what is taken out of a tuple or an unwritten list,
// both sides of a subgraph boundary). Where control flow meets, a root has operands instead of a maker.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/profile/effects.h"
#include "engine/profile/grad_mode.h"
#include "engine/profile/program.h"
#include "engine/profile/reason.h"
#include "engine/profile/regions.h"

namespace faultline::profile {

enum class RefKind : uint8_t { Other, Tensor, Absent, Aggregate };

// What a value is: a tensor root, certainly None, a container that is followed, or something else.
struct Ref {
  RefKind kind = RefKind::Other;
  int32_t id = -1;
  bool operator==(const Ref&) const = default;
};

// A value as a step reads it.
struct ReadValue {
  Ref ref;
  int32_t feed = -1;     // the step of the profile node that gives it
  bool refined = false;  // its static type says more than Tensor
};

enum class RootKind : uint8_t { Plain, IfResult, LoopCarried, LoopResult };

struct FlowOperand {
  int32_t root = -1;  // kAbsent, kUnfollowed or a root
  Pos at = 0;         // where it is read
  int32_t arm = -1;   // the block that delivers it; -1: always
};
constexpr int32_t kAbsent = -1;
constexpr int32_t kUnfollowed = -2;

struct Root {
  RootKind kind = RootKind::Plain;
  Pos birth = 0;
  int32_t control = 0;
  const Value* value = nullptr;
  ReasonId reason = kNoReason;  // why nothing is known without evidence
  std::vector<FlowOperand> operands;
  RegionId object = 0;  // in objects()
  RegionId group = 0;   // in groups()
  bool view = false;
};

// An effect on tensors. Reaches every root whose region meets that of `root` (in objects() for identity and
// shape, in groups() for the gradient); with `everything`, all roots whose region is the wildcard's or has
// escaped.
struct Write {
  int32_t step = 0;
  const Node* node = nullptr;
  int32_t root = -1;
  bool everything = false;
  bool identity = false;
  bool shape = false;
  bool keeps_rank = false;
  bool lowers = false;             // requires_grad may become anything
  std::vector<int32_t> brings_in;  // roots whose requires_grad may come in; kUnfollowed: not known which
};

struct Aggregate {
  bool list = false;            // else a tuple
  bool complete = false;        // all elements are in `elements`
  ReasonId reason = kNoReason;  // why elements cannot be followed, when they cannot
  std::vector<Ref> elements;
  std::vector<std::string> keys;  // of a dict: one per element
  const Value* value = nullptr;
  Pos birth = 0;
  RegionId object = 0;  // of elements that are not listed
  RegionId group = 0;
  bool fresh_objects = false;  // each element is an object of its own
};

class Objects {
 public:
  Objects(const FlowProgram& program, const GradModes& modes, Reasons& reasons);
  ~Objects();

  Ref ref(const Value* value) const { return operand(value).ref; }
  ReadValue operand(const Value* value) const;
  // What step `step`, one that reads operands, reads: one for each input of its node.
  const ReadValue* operands(int32_t step) const {
    return operands_.data() + first_operand_[static_cast<size_t>(step)];
  }
  size_t operandCount(int32_t step) const {
    return first_operand_[static_cast<size_t>(step) + 1] - first_operand_[static_cast<size_t>(step)];
  }
  const std::vector<Root>& roots() const { return roots_; }
  const std::vector<Write>& writes() const { return writes_; }
  Regions& objects() { return objects_; }
  Regions& groups() { return groups_; }
  // Was a view of this group made where grad mode was not certainly on?
  bool hasUngradedView(int32_t root);

 private:
  friend class ObjectBuilder;
  PointerMap<Value, ReadValue> refs_;
  // Analyses walk over all operands again and again: in a row they are there at once.
  std::vector<ReadValue> operands_;
  std::vector<uint32_t> first_operand_;  // per step, and one more
  std::vector<Root> roots_;
  std::vector<Write> writes_;
  std::vector<Aggregate> aggregates_;
  Regions objects_;
  Regions groups_;
  std::vector<RegionId> ungraded_;
};

}  // namespace faultline::profile
