#include "generators/mutate/mutate.h"

#include "engine/support/check.h"
#include "faultline/ir.h"
#include "generators/mutate/draft.h"
#include "generators/mutate/forecast.h"
#include "generators/ops/limits.h"

namespace faultline {

namespace {

enum Growth { KEEPS, GROWS, SHRINKS };

struct Mutation {
  const char* name;
  uint32_t weight;
  Growth growth;
  bool (*apply)(Draft& draft);
  const char* help;
};

constexpr Mutation mutations[] = {
#define FAULTLINE_MUTATION(name, weight, growth, function, help) {#name, weight, growth, function, help},
#include "generators/mutate/mutations.def"
#undef FAULTLINE_MUTATION
};

// Kinds tried before one edit is given up. Where all fail, another seed is an edit that always fits.
constexpr int mutation_tries = 12;

size_t sizeOf(Case& c) { return allNodes(*c.graph).size(); }

bool withinLimits(const Case& c) {
  return c.graph->inputs().size() <= mutate_limits::max_inputs &&
         c.graph->outputs().size() <= mutate_limits::max_returns;
}

// Now and then an edit that will throw: eager's error must be everybody's error.
bool accepts(const Forecast& before, const Forecast& after, Choices& choices) {
  if (after.misfits > before.misfits) return choices.flip(1);
  return after.spoils <= before.spoils || choices.flip(limits::spoiled_percent);
}

// An invalid case that goes on would be found by whoever reads it, far from here.
void checkResult(const Case& c, const std::string& what) {
  std::string text = writeCase(c);
  Result<void> verified = verifyGraph(*c.graph);
  FAULTLINE_CHECK(verified.has_value(), what + ": " + (verified ? "" : verified.error().str()) + "\n" + text);
  Result<Case> read = readCase(text);
  FAULTLINE_CHECK(read.has_value(), what + ": " + (read ? "" : read.error().str()) + "\n" + text);
}

std::optional<Case> tryMutation(const Case& c, const Mutation& mutation, const Forecast& before,
                                Choices& choices) {
  Choices::Span span(choices, mutation.name);
  Case edited = cloneCase(c);
  bool small = withinLimits(edited);
  markPlannedNodes(edited);
  Draft draft{edited, choices};
  if (!mutation.apply(draft)) return std::nullopt;
  renamePlannedNodes(edited);
  repairCase(edited);
  if (small && !withinLimits(edited)) return std::nullopt;
  if (!accepts(before, forecastCase(edited), choices)) return std::nullopt;
  bool too_long = mutation.growth == GROWS && writeCase(edited).size() > mutate_limits::max_bytes;
  if (too_long) return std::nullopt;
  return edited;
}

const Mutation& drawMutation(Case& c, Choices& choices) {
  size_t size = sizeOf(c);
  std::vector<uint32_t> weights;
  for (const Mutation& mutation : mutations) {
    uint32_t weight = mutation.weight * 4;
    // Half the weight at three quarters of the limit, none behind it; the other way round for what shrinks.
    if (mutation.growth == GROWS && size > mutate_limits::max_nodes * 3 / 4) weight /= 2;
    if (mutation.growth == GROWS && size >= mutate_limits::max_nodes) weight = 0;
    if (mutation.growth == SHRINKS && size > mutate_limits::max_nodes / 2) weight *= 2;
    if (mutation.growth == SHRINKS && size < 4) weight /= 4;
    weights.push_back(weight);
  }
  return mutations[choices.weighted(weights)];
}

}  // namespace

const std::vector<MutationKind>& mutationKinds() {
  static const std::vector<MutationKind> kinds = [] {
    std::vector<MutationKind> all;
    for (const Mutation& mutation : mutations) all.push_back({mutation.name, mutation.help});
    return all;
  }();
  return kinds;
}

Case mutateCase(const Case& c, Choices& choices, std::vector<std::string>* kinds) {
  FAULTLINE_CHECK(c.graph != nullptr && !c.runs.empty(), "only whole cases can be edited");
  Case current = cloneCase(c);
  Forecast before = forecastCase(current);
  std::string made;
  for (size_t edits = 1 + choices.weighted({60, 25, 10, 5}); edits > 0; --edits) {
    std::optional<Case> next;
    const char* name = "change_seed";
    for (int i = 0; i < mutation_tries && !next; ++i) {
      const Mutation& mutation = drawMutation(current, choices);
      next = tryMutation(current, mutation, before, choices);
      if (next) name = mutation.name;
    }
    if (next) {
      current = std::move(*next);
    } else {
      Draft draft{current, choices};
      changeSeed(draft);
    }
    made += std::string(made.empty() ? "" : " ") + name;
    if (kinds != nullptr) kinds->push_back(name);
  }
  current.notes["profile"] = "edited";
  current.expectations.clear();
  checkResult(current, made);
  return current;
}

std::optional<Case> mutateCase(const Case& c, Choices& choices, const std::string& kind) {
  for (const Mutation& mutation : mutations) {
    if (kind != mutation.name) continue;
    std::optional<Case> made = tryMutation(c, mutation, forecastCase(c), choices);
    if (made) checkResult(*made, kind);
    return made;
  }
  FAULTLINE_CHECK(false, "no mutation is called " + kind);
}

std::string mutateCaseText(std::string_view text, uint64_t seed) {
  Choices choices = Choices::fromSeed(seed);
  static const std::string smallest =
      "faultline case 1\nrun: float32[2,3]:grad, float32[2,3]:grad\n  backward: all\n\n"
      "graph(%x : Tensor, %y : Tensor):\n  %a : Tensor = aten::mul(%x, %y)\n  return (%a)\n";
  Result<Case> read = readCase(text);
  if (!read || !verifyGraph(*read->graph)) read = readCase(smallest);
  FAULTLINE_CHECK(read.has_value(), read ? "" : read.error().str());
  return writeCase(mutateCase(*read, choices));
}

std::string crossCaseTexts(std::string_view first, std::string_view second, uint64_t seed) {
  Choices choices = Choices::fromSeed(seed);
  Result<Case> a = readCase(first), b = readCase(second);
  if (!a || !verifyGraph(*a->graph) || !b || !verifyGraph(*b->graph)) return mutateCaseText(first, seed);
  return writeCase(crossCases(*a, *b, choices));
}

}  // namespace faultline
