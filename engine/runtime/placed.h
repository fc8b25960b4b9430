// Pieces over numbered registers.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "engine/runtime/runnable_part.h"
#include "engine/runtime/steps.h"

namespace faultline {

struct PlacedPart {
  std::shared_ptr<const RunnablePart> part;
  std::vector<Register> inputs, outputs;
  std::vector<Register> last_used;  // of registers made in this piece: nobody reads them after this part
};

struct PlacedSegment {
  std::vector<PlacedPart> parts;
  std::vector<Register> inputs, outputs;
  std::vector<Register> last_used;  // nobody reads them after this segment
  // Makes its ops in their order, to be run again when a part throws; empty where that could be seen (writes,
  // random numbers, prints) or would be the same.
  std::function<std::shared_ptr<torch::jit::Graph>()> as_written;
};

struct PlacedPiece {
  std::vector<PlacedSegment> segments;
  std::vector<Register> outputs;
  std::vector<Register> last_used;  // nobody reads them after this piece
  std::vector<size_t> seams;        // that it makes, positions in Impl::seams
};

}  // namespace faultline
