// The lanes of lanes.def.
#pragma once
#include <memory>

#include "oracles/lane.h"

namespace faultline {

std::unique_ptr<Lane> makeReferenceLane();
std::unique_ptr<Lane> makeStockLane();
std::unique_ptr<Lane> makeBrokenLane();
std::unique_ptr<Lane> makeStitchedLane();
std::unique_ptr<Lane> makeRemovedLane();
std::unique_ptr<Lane> makeProfiledLane();

}  // namespace faultline
