#include "generators/generate/swarm.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/support/check.h"

namespace faultline {

namespace {

struct FeatureRow {
  const char* name;
  uint32_t percent;
  const char* help;
};

constexpr FeatureRow feature_rows[] = {
#define FAULTLINE_FEATURE(name, percent, help) {#name, percent, help},
#include "generators/generate/features.def"
#undef FAULTLINE_FEATURE
};

// Rows left out of a case's subset: enough that each pair of ops is often seen without a third.
constexpr int row_bits = 62;

struct Pin {
  std::string name;
  bool on = true;
};

Pin readPin(const std::string& text) {
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return {text, true};
  return {text.substr(1), text[0] == '+'};
}

Feature featureOfFamily(const std::string& family) {
#define FAULTLINE_FAMILY(name, feature) \
  if (family == #name) return Feature::feature;
#include "generators/generate/families.def"
#undef FAULTLINE_FAMILY
  FAULTLINE_CHECK(false, fmt::format("op family '{}' has no row in families.def", family));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool keepsGradient(const OpRow& row) {
  return row.autodiff && row.differentiable && !contains(row.hazards, "zero_gradient") &&
         !contains(row.hazards, "list");
}

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

Result<void> checkName(std::string_view what, const std::string& name,
                       const std::vector<std::string>& known) {
  if (contains(known, name)) return {};
  auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return editDistance(a, name) < editDistance(b, name);
  });
  return fail(ErrorKind::Invalid,
              fmt::format("no {} is called '{}'; did you mean '{}'?", what, name, *nearest));
}

}  // namespace

bool Swarm::anyRow() const {
  return std::any_of(weights.begin(), weights.end(), [](uint32_t weight) { return weight != 0; });
}

const std::vector<GeneratorFeature>& generatorFeatures() {
  static const std::vector<GeneratorFeature> features = [] {
    std::vector<GeneratorFeature> all;
    for (const FeatureRow& row : feature_rows) all.push_back({row.name, row.help, row.percent});
    return all;
  }();
  return features;
}

Result<void> validateGenerateOptions(const GenerateOptions& options) {
  std::vector<std::string> ops, features;
  for (const OpRow& row : opRows()) ops.push_back(row.name);
  for (const GeneratorFeature& feature : generatorFeatures()) features.push_back(feature.name);
  for (const auto* list : {&options.ops_added, &options.ops_removed}) {
    for (const std::string& name : *list) {
      if (auto known = checkName("op", name, ops); !known) return known;
      if (contains(options.ops_added, name) && contains(options.ops_removed, name)) {
        return fail(ErrorKind::Invalid, fmt::format("op '{}' is both added and removed", name));
      }
    }
  }
  for (const std::string& text : options.features) {
    if (auto known = checkName("feature", readPin(text).name, features); !known) return known;
  }
  if (options.min_nodes > options.max_nodes) {
    return fail(ErrorKind::Invalid, fmt::format("at least {} nodes and at most {} cannot both hold",
                                                options.min_nodes, options.max_nodes));
  }
  return {};
}

Swarm drawSwarm(Choices& choices, const GenerateOptions& options) {
  Choices::Span span(choices, "swarm");
  Swarm swarm;
  for (size_t i = 0; i < swarm.features.size(); ++i) {
    if (feature_rows[i].percent > 0) swarm.features[i] = choices.flip(feature_rows[i].percent);
  }
  for (const std::string& text : options.features) {
    Pin pin = readPin(text);
    for (size_t i = 0; i < swarm.features.size(); ++i) {
      if (pin.name == feature_rows[i].name) swarm.features[i] = pin.on;
    }
  }

  const std::vector<OpRow>& rows = opRows();
  uint64_t dropped = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % row_bits == 0) {
      uint64_t half = choices.below(uint64_t{1} << row_bits);
      dropped = half & choices.below(uint64_t{1} << row_bits);
    }
    Feature feature = featureOfFamily(rows[i].family);
    bool on = (feature == Feature::always || swarm.has(feature)) && (dropped >> (i % row_bits) & 1) == 0;
    if (contains(options.ops_added, rows[i].name)) on = true;
    bool removed = contains(options.ops_removed, rows[i].name);
    if (removed) on = false;
    swarm.weights.push_back(on ? rows[i].weight : 0);
    swarm.fill_weights.push_back(feature == Feature::always && !removed ? rows[i].weight : 0);
    swarm.chain_weights.push_back(on && keepsGradient(rows[i]) ? rows[i].weight : 0);
  }
  return swarm;
}

}  // namespace faultline
