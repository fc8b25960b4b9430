// Everything global in torch that a lane could leave changed behind it: one struct, captured before a lane,
// compared after it. A lane may change what it likes while it runs; it hands the state back as it found it.
//
// Thread-local fields are those of the calling thread. Not thread-safe: no other thread may be changing
// these.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace faultline {

struct GlobalState {
  at::Tensor generator;  // of the CPU, its whole state
#define FAULTLINE_STATE(type, name, read, write) type name{};
#include "oracles/exec/global_state.def"
#undef FAULTLINE_STATE
};

GlobalState captureGlobalState();
// Sets every field that can be set (registered passes and the fuser's "may use" answers of a build cannot).
void restoreGlobalState(const GlobalState& state);
// Empty when equal; else "grad_mode: 1, now 0", first difference only.
std::string describeGlobalStateDifference(const GlobalState& before, const GlobalState& now);

// The CPU's generator: what every random stream of a lane comes from.
at::Tensor generatorState();
void setGeneratorState(const at::Tensor& state);
void seedGenerator(uint64_t seed);

// Captures when made. `check` aborts with the field's name when something has changed since.
class GlobalStateCheck {
 public:
  GlobalStateCheck() : before_(captureGlobalState()) {}
  void check(const std::string& who) const;
  void restore() const { restoreGlobalState(before_); }

 private:
  GlobalState before_;
};

}  // namespace faultline
