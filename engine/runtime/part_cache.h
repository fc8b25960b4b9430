// Parts that are written alike made once: the layers of a deep network are mostly the same few pieces.
#pragma once
#include <memory>
#include <unordered_map>

#include "engine/runtime/runnable_part.h"

namespace faultline {

// One thread at a time.
class PartCache {
 public:
  // A part as RunnablePart makes it of these, or one made before of an equal graph. Parts that stay eager and
  // parts with a tensor constant, which a write could tell apart, are never shared.
  std::shared_ptr<const RunnablePart> get(std::shared_ptr<torch::jit::Graph> graph, bool compile,
                                          const InputMask& expected, Guard guard, const InputMask& open = {});

 private:
  std::unordered_multimap<size_t, std::shared_ptr<const RunnablePart>> parts_;
};

}  // namespace faultline
