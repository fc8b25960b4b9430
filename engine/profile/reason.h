// Reasons by number.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "faultline/profile_reason.h"

namespace faultline::profile {

using ReasonId = int32_t;
constexpr ReasonId kNoReason = -1;

using Reason = ProfileReason;

class Reasons {
 public:
  ReasonId of(ReasonKind kind, const torch::jit::Node* node = nullptr);
  const Reason& operator[](ReasonId id) const { return all_[static_cast<size_t>(id)]; }
  std::string text(ReasonId id) const { return id == kNoReason ? std::string() : (*this)[id].text(); }

 private:
  std::vector<Reason> all_;
  std::unordered_map<const torch::jit::Node*, ReasonId> ended_;  // the one kind that comes in numbers
  std::unordered_map<int, ReasonId> plain_;
};

}  // namespace faultline::profile
