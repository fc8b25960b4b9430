// The profile-node protocol that pytorch/pytorch issue 55999 asked for: prim::profile nodes say what tensors
// looked like on a profiling run; passes move code and lose them. Propagate, validate, retrieve per use,
// remove.
//
// Meaning of a node, an answer and its fields: engine/profile/README.md. Threading: free functions and
// ProfileIndex only read the graph unless they say "changes"; different graphs may be used from different
// threads.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/util/SmallVector.h>
#include <torch/csrc/jit/ir/ir.h>

#include "faultline/error.h"
#include "faultline/profile_reason.h"

namespace faultline {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

// Changes `graph`: clones (never moves) profile nodes so that every use with an answer is fed by a node in
// its own block that says it. Idempotent; answers stay the same; never changes what the graph computes.
void propagateProfileNode(std::shared_ptr<Graph> graph);

// True when every use that has an answer has it at its direct feed, and nothing contradicts.
bool validateProfileNode(std::shared_ptr<Graph> graph);

// A profile node whose profiled_type *is* the answer for this use; else nullptr.
Node* retrieveProfileInformation(Use use);

enum class FieldState {
  Nothing,  // no evidence speaks of it
  Value,    // known
  Varies,   // evidence differs
  Ended,    // it was known, and a write or mode change in between ended it
};

template <class T>
struct ProfileField {
  FieldState state = FieldState::Nothing;
  T value{};
  ProfileReason why;  // for Varies, Ended and Nothing: names the op or mode that is the reason
  bool known() const { return state == FieldState::Value; }
};

enum class ProfileState { Unknown, Unseen, Varies, Partial, Concrete };
const char* toString(ProfileState state);

using ProfileDimensions = c10::SmallVector<ProfileField<int64_t>, 4>;

struct ProfileLookup {
  ProfileState state = ProfileState::Unknown;
  ProfileField<bool> defined;
  ProfileField<at::ScalarType> dtype;
  ProfileField<c10::Device> device{FieldState::Nothing, c10::Device(c10::DeviceType::CPU), {}};
  ProfileField<size_t> rank;
  ProfileDimensions sizes;    // rank entries, empty when the rank is not known
  ProfileDimensions strides;  // likewise
  ProfileField<bool> requires_grad;
  bool conditional = false;  // the evidence does not cover the use: act on it only behind a guard
  c10::TensorTypePtr type;   // the known fields as a type; nullptr when none is known
  ProfileReason why_not;     // for an answer without fields
};

// The same, and where it comes from: the evidence is sought from place to place, which takes microseconds.
struct ProfileExplanation : ProfileLookup {
  Node* node = nullptr;     // a node that says exactly this, if there is one
  std::vector<Node*> from;  // the evidence
  std::string place;        // where the evidence stands: "direct feed", "join of both arms", …
};

ProfileExplanation lookupProfile(const Use& use);

// What is known, and nothing of where from and why not.
struct ProfileKnown {
  c10::TensorTypePtr type;   // the known fields; nullptr when none is
  bool conditional = false;  // as in ProfileLookup
};

// For passes that make or replace values. Both put a node right behind the value's maker, let its uses read
// it, and take away what older nodes said of the value. They return false, and change nothing, where nothing
// is left to say or the value's static type excludes it.
//
// setProfile: executions of the profiled runs would have seen `type`; fields that it leaves open are not
// spoken of. requires_grad is the tensor's own, whatever the grad mode.
bool setProfile(Value* value, const c10::TensorTypePtr& type);  // changes the value's graph
// transferProfile: `to` holds what `from` did; `from` keeps its nodes. Only what is certain where `from` is
// made is taken along, and requires_grad only between makers that run under one grad mode. Both of one graph.
bool transferProfile(Value* from, Value* to);  // changes their graph

struct ProfileFinding {
  std::string kind;  // a row of findings.def
  const Node* node = nullptr;
  const Value* value = nullptr;
  std::string message;  // both facts and what to do
};

struct ValidateOptions {
  bool about_to_run = false;  // a profile counter left in the graph is then a finding
};

std::vector<ProfileFinding> findProfileViolations(const Graph& graph, ValidateOptions options = {});

size_t removeProfileNodes(
    Graph& graph);  // changes: all of them, subgraphs and counters included; returns how many
size_t removeProfileClones(Graph& graph);  // changes: only what propagate added

// The same queries after one pass over the graph; valid while the graph does not change.
class ProfileIndex {
 public:
  explicit ProfileIndex(const Graph& graph);
  ~ProfileIndex();
  ProfileIndex(ProfileIndex&&) noexcept;
  ProfileIndex& operator=(ProfileIndex&&) noexcept;

  ProfileLookup lookup(const Use& use) const;
  ProfileExplanation explain(const Use& use) const;
  // For passes that ask at every use: lookup's type at a fraction of its cost.
  ProfileKnown known(const Use& use) const;
  Node* retrieve(const Use& use) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace faultline
