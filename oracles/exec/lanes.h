// The lanes of lanes.def.
#pragma once
#include <memory>

#include "oracles/lane.h"

namespace faultline {

std::unique_ptr<Lane> makeReferenceLane();
std::unique_ptr<Lane> makeStockLane();
std::unique_ptr<Lane> makeBrokenLane();
std::unique_ptr<Lane> makeStitchedLane();

}  // namespace faultline
