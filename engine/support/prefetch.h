// A graph that is larger than the cache is read at the speed of memory, one miss after the other: what will
// be read soon is asked for while something else is looked at.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

namespace faultline {

// How many steps: enough that memory has answered when their turn comes.
constexpr int kAhead = 8;

template <class Object>
inline void prefetch(const Object* object) {
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < sizeof(Object); at += kLine)
    __builtin_prefetch(reinterpret_cast<const char*>(object) + at);
}

// What a node points to. Reads the node, so that it should have been asked for before.
inline void prefetchValuesOf(const torch::jit::Node* node) {
  __builtin_prefetch(node->inputs().data());
  for (const torch::jit::Value* output : node->outputs()) prefetch(output);
}

}  // namespace faultline
