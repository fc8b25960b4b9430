#include "oracles/exec/global_state.h"

#include <cfenv>
#include <cstring>
#include <mutex>
#include <sstream>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/codegen/fuser/interface.h>
#include <torch/csrc/jit/passes/graph_fuser.h>
#include <torch/csrc/jit/passes/pass_manager.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/graph_executor_impl.h>
#include <torch/csrc/jit/tensorexpr/kernel.h>

#include "engine/support/check.h"

namespace faultline {
namespace {

// torch has a setter only; the processor's answer is the truth.
bool flushesDenormals() {
  volatile float tiny = 1e-39f;
  volatile float product = tiny * 1.0f;
  return product == 0.0f;
}

void setDefaultDtype(const std::string& name) {
  for (at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    if (name == c10::scalarTypeToTypeMeta(type).name())
      c10::set_default_dtype(c10::scalarTypeToTypeMeta(type));
  }
}

std::string fusionStrategy() {
  std::string text;
  for (const auto& [behavior, depth] : torch::jit::getFusionStrategy()) {
    text +=
        fmt::format("{}:{} ", behavior == torch::jit::FusionBehavior::STATIC ? "static" : "dynamic", depth);
  }
  return text;
}

void setFusionStrategyFrom(const std::string& text) {
  torch::jit::FusionStrategy strategy;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    strategy.emplace_back(word.substr(0, colon) == "static" ? torch::jit::FusionBehavior::STATIC
                                                            : torch::jit::FusionBehavior::DYNAMIC,
                          std::stoul(word.substr(colon + 1)));
  }
  torch::jit::setFusionStrategy(strategy);
}

bool sameBytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace

at::Tensor generatorState() { return at::detail::getDefaultCPUGenerator().get_state(); }

void setGeneratorState(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

void seedGenerator(uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

GlobalState captureGlobalState() {
  GlobalState state;
  state.generator = generatorState();
#define FAULTLINE_STATE(type, name, read, write) state.name = (read);
#include "oracles/exec/global_state.def"
#undef FAULTLINE_STATE
  return state;
}

void restoreGlobalState(const GlobalState& state) {
  setGeneratorState(state.generator);
#define FAULTLINE_STATE(type, name, read, write) \
  if ((read) != state.name) {                    \
    const type& value = state.name;              \
    write;                                       \
  }
#include "oracles/exec/global_state.def"
#undef FAULTLINE_STATE
}

std::string describeGlobalStateDifference(const GlobalState& before, const GlobalState& now) {
#define FAULTLINE_STATE(type, name, read, write) \
  if (before.name != now.name) return fmt::format("{}: {}, now {}", #name, before.name, now.name);
#include "oracles/exec/global_state.def"
#undef FAULTLINE_STATE
  if (!sameBytes(before.generator, now.generator)) return "generator: its state has moved";
  return {};
}

void GlobalStateCheck::check(const std::string& who) const {
  const std::string difference = describeGlobalStateDifference(before_, captureGlobalState());
  FAULTLINE_CHECK(difference.empty(), who + " left global state changed: " + difference);
}

}  // namespace faultline
