// A lane: one way to execute a case. Groups: reference, engine, stock, pass, device, legacy.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generators/case/case.h"
#include "oracles/trace.h"

namespace faultline {

class Lane {
 public:
  virtual ~Lane() = default;
  // All runs of the case. Never throws for what the case causes: errors stand in the trace. Global torch
  // state is captured, set, restored and compared around it (oracles/exec/global_state.h).
  virtual Trace execute(const Case& c, uint64_t seed) = 0;
};

struct LaneInfo {
  std::string name;   // "engine.broken"
  std::string group;  // "engine"
  std::string help;
  std::function<std::unique_ptr<Lane>()> make;  // returns nullptr where this machine lacks what it needs
};

// Lanes of lanes.def plus those registered by plugins and tests. Registering is not thread-safe: do it first.
std::vector<LaneInfo> allLanes();
void registerLane(LaneInfo lane);
const LaneInfo* findLane(std::string_view name);
// Names or groups to lane names, in the order of allLanes(), each once. Refuses an unknown word, naming the
// nearest.
Result<std::vector<std::string>> resolveLanes(const std::vector<std::string>& words);

}  // namespace faultline
