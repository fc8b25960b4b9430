// Which features and ops one case draws from.
#pragma once
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "generators/choices/choices.h"
#include "generators/generate/generate.h"
#include "generators/ops/op_row.h"

namespace faultline {

enum class Feature {
#define FAULTLINE_FEATURE(name, percent, help) name,
#include "generators/generate/features.def"
#undef FAULTLINE_FEATURE
  count,
  always = count,
};

struct Swarm {
  std::bitset<static_cast<size_t>(Feature::count)> features;
  std::vector<uint32_t> weights;  // per row of opRows()
  std::vector<uint32_t>
      chain_weights;  // the same for chains: rows that autodiff takes and that keep a gradient

  std::vector<uint32_t> fill_weights;  // the rows that take part in every case, drawn or not

  bool has(Feature feature) const { return features[static_cast<size_t>(feature)]; }
  bool anyRow() const;
};

// Pins and filters of `options` hold; the rest is drawn. `options` must be valid (validateGenerateOptions).
Swarm drawSwarm(Choices& choices, const GenerateOptions& options);

}  // namespace faultline
