// What a lane did with a case's profile, as plain data: what was claimed, what was answered, what arrived.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "faultline/recorder.h"

namespace faultline {

// Fields that are known; the others are not spoken of.
struct FactTrace {
  std::optional<bool> defined;
  std::optional<at::ScalarType> dtype;
  std::optional<c10::Device> device;
  std::optional<size_t> rank;
  std::vector<std::optional<int64_t>> sizes, strides;  // `rank` entries, or none
  std::optional<bool> requires_grad;
  bool operator==(const FactTrace&) const = default;
};

struct ProfileAnswerTrace {
  std::string state;  // toString(ProfileState)
  bool conditional = false;
  bool answered = false;  // some field is known
  FactTrace fact;
  bool operator==(const ProfileAnswerTrace&) const = default;
};

// A use of a tensor by something that is no profile node.
struct ProfileUseTrace {
  std::string at;                    // "aten::mul, operand 0"
  ProfileAnswerTrace before, after;  // propagation
  std::vector<SeenTensor> seen;      // per run; subgraphs as if inlined
  std::string place = {};            // the innermost of: top, if, loop, subgraph
  std::string why_not = {};          // of a use without an answer: toString(ReasonKind)
};

// A profile node, as it stands in the graph before propagation.
struct ProfileClaimTrace {
  std::string at;       // what it is on
  bool unseen = false;  // it says that it never ran
  bool raw = false;     // requires_grad is the tensor's, whatever the grad mode
  FactTrace fact;
  std::optional<size_t> site;  // the use right behind it, where what it gets is seen
};

struct ProfileTrace {
  std::string evidence;  // "kept": the case's own nodes; "recorded": made of the first run
  std::vector<ProfileUseTrace> uses;
  std::vector<ProfileClaimTrace> claims;
  std::vector<std::string> findings_before,
      findings_after;                        // rows of findings.def; before: where there are some after
  std::string propagated, propagated_again;  // graph texts
  std::string removed, removed_unpropagated;
  std::string verify_error;  // of the propagated graph and what removal leaves; empty: both are valid
  // Uses that have answers though every node was made to say that it never ran.
  bool unseen_tried = false;
  std::vector<std::string> answers_of_unseen;
};

}  // namespace faultline
