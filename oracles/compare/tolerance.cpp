#include "oracles/compare/tolerance.h"

#include <string_view>
#include <unordered_set>

namespace faultline {
namespace {

#define FAULTLINE_TOLERANCE(dtype, relative, absolute, reason)
#define FAULTLINE_TOLERANCE_FACTOR(name, factor, reason) constexpr double kFactor_##name = factor;
#include "oracles/compare/tolerances.def"
#undef FAULTLINE_TOLERANCE
#undef FAULTLINE_TOLERANCE_FACTOR

bool accumulates(std::string_view op) {
  static const std::unordered_set<std::string_view> kOps = {
      "mm",          "bmm",          "matmul",     "linear",   "addmm",     "addmv",     "addbmm",
      "baddbmm",     "mv",           "dot",        "outer",    "einsum",    "conv1d",    "conv2d",
      "conv3d",      "convolution",  "sum",        "mean",     "var",       "std",       "norm",
      "prod",        "cumsum",       "cumprod",    "trace",    "logsumexp", "softmax",   "log_softmax",
      "layer_norm",  "batch_norm",   "avg_pool2d", "nll_loss", "mse_loss",  "embedding", "index_add",
      "scatter_add", "logcumsumexp", "sum_to_size"};
  return kOps.count(op) != 0;
}

void addProfile(const torch::jit::Block* block, NumericProfile& profile) {
  for (const torch::jit::Node* node : block->nodes()) {
    if (node->kind().is_aten()) {
      ++profile.ops;
      profile.accumulates = profile.accumulates || accumulates(node->kind().toUnqualString());
    }
    for (const torch::jit::Block* inner : node->blocks()) addProfile(inner, profile);
    if (node->hasAttribute(torch::jit::attr::Subgraph)) {
      addProfile(node->g(torch::jit::attr::Subgraph)->block(), profile);
    }
  }
}

}  // namespace

NumericProfile numericProfile(const torch::jit::Graph& graph) {
  NumericProfile profile;
  addProfile(graph.block(), profile);
  return profile;
}

Tolerance toleranceFor(at::ScalarType dtype, const NumericProfile& profile, bool gradient) {
  Tolerance tolerance;
  switch (c10::toRealValueType(dtype)) {
#define FAULTLINE_TOLERANCE(type, rel, abs, reason) \
  case at::ScalarType::type:                        \
    tolerance = {rel, abs};                         \
    break;
#define FAULTLINE_TOLERANCE_FACTOR(name, factor, reason)
#include "oracles/compare/tolerances.def"
#undef FAULTLINE_TOLERANCE
#undef FAULTLINE_TOLERANCE_FACTOR
    default:
      return tolerance;
  }
  double factor = 1.0 + kFactor_eight_ops * (static_cast<double>(profile.ops) / 8.0);
  if (profile.accumulates) factor *= kFactor_accumulation;
  if (gradient) factor *= kFactor_gradient;
  // Low precision has no room for the product of all factors: its kernels accumulate in float32 anyway.
  if (tolerance.relative > 1e-3) factor = std::min(factor, 4.0);
  return {tolerance.relative * factor, tolerance.absolute * factor};
}

}  // namespace faultline
