// The profile protocol as the lanes call it, so that tests can hand them a wrong one.
#pragma once
#include <functional>

#include <ATen/core/stack.h>

#include "faultline/profile.h"
#include "oracles/lane.h"

namespace faultline {

// A graph specialised on its profile.
struct SpecialisedProgram {
  std::function<void(torch::jit::Stack&)> run;
  size_t pruned = 0;  // gradients that are left out
};

struct ProfilePasses {
  std::function<void(const std::shared_ptr<Graph>&)> propagate;
  std::function<void(Graph&)> remove;
  std::function<std::vector<ProfileLookup>(const Graph&, const std::vector<Use>&)> lookup;
  // Refusals leave the graph unspecialised.
  std::function<Result<SpecialisedProgram>(const std::shared_ptr<Graph>&)> apply;
};

ProfilePasses engineProfilePasses();

std::unique_ptr<Lane> makeRemovedLane(ProfilePasses passes);
std::unique_ptr<Lane> makeProfiledLane(ProfilePasses passes);

}  // namespace faultline
