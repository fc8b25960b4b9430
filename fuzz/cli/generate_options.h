// --ops and --features: the same words wherever cases are generated, and in tapes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "faultline/error.h"
#include "generators/generate/generate.h"

namespace CLI {
class App;
}

namespace faultline::cli {

struct GenerateFlags {
  std::vector<std::string> ops;       // "+add", "-mul"
  std::vector<std::string> features;  // "+view", "-mutation"
};

void addGenerate(CLI::App& app, GenerateFlags& flags);

// Refuses words without a sign, contradictions, and rows or features that do not exist, naming the nearest.
Result<GenerateOptions> generateOptions(const GenerateFlags& flags);

// A tape holds choices only; what else a case depends on stands in its options. The inverse takes what is
// there.
void noteInTape(Tape& tape, uint64_t case_seed, const GenerateFlags& flags);
Result<Case> caseOfTape(const Tape& tape);

uint64_t randomSeed();  // short enough to be typed again

}  // namespace faultline::cli
