#include "fuzz/cli/generate_options.h"

#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/options.h"

namespace faultline::cli {
namespace {

constexpr const char* kSeed = "seed";
constexpr const char* kOps = "ops";
constexpr const char* kFeatures = "features";

Result<void> checkSigned(const std::string& word, std::string_view flag) {
  if (word.size() > 1 && (word[0] == '+' || word[0] == '-')) return {};
  return fail(ErrorKind::Invalid, fmt::format("{}: '{}' needs a sign: '+{}' asks for it, '-{}' leaves it out",
                                              flag, word, word, word));
}

}  // namespace

void addGenerate(CLI::App& app, GenerateFlags& flags) {
  addWords(app, "--ops", flags.ops, "±OP,…", "'+a' always takes part, '-b' never does");
  addWords(app, "--features", flags.features, "±FEATURE,…",
           "likewise for features; the others are drawn per case");
}

Result<GenerateOptions> generateOptions(const GenerateFlags& flags) {
  GenerateOptions options;
  for (const std::string& word : flags.ops) {
    if (const auto fine = checkSigned(word, "--ops"); !fine) return tl::make_unexpected(fine.error());
    (word[0] == '+' ? options.ops_added : options.ops_removed).push_back(word.substr(1));
  }
  for (const std::string& added : options.ops_added) {
    const auto& removed = options.ops_removed;
    if (std::find(removed.begin(), removed.end(), added) != removed.end()) {
      return fail(ErrorKind::Invalid, fmt::format("--ops: both '+{0}' and '-{0}'", added));
    }
  }
  for (const std::string& word : flags.features) {
    if (const auto fine = checkSigned(word, "--features"); !fine) return tl::make_unexpected(fine.error());
    options.features.push_back(word);
  }
  if (const auto valid = validateGenerateOptions(options); !valid) return tl::make_unexpected(valid.error());
  return options;
}

void noteInTape(Tape& tape, uint64_t case_seed, const GenerateFlags& flags) {
  tape.options.emplace_back(kSeed, std::to_string(case_seed));
  if (!flags.ops.empty()) tape.options.emplace_back(kOps, fmt::format("{}", fmt::join(flags.ops, ",")));
  if (!flags.features.empty()) {
    tape.options.emplace_back(kFeatures, fmt::format("{}", fmt::join(flags.features, ",")));
  }
}

Result<Case> caseOfTape(const Tape& tape) {
  uint64_t seed = 0;
  GenerateFlags flags;
  for (const auto& [name, value] : tape.options) {
    if (name == kSeed) {
      const auto number = parseCount(value);
      if (!number) return fail(ErrorKind::Invalid, "the tape's seed: " + number.error().message);
      seed = *number;
    } else if (name == kOps) {
      flags.ops = CLI::detail::split(value, ',');
    } else if (name == kFeatures) {
      flags.features = CLI::detail::split(value, ',');
    }
  }
  const auto options = generateOptions(flags);
  if (!options) return tl::make_unexpected(options.error());
  Choices choices = Choices::fromTape(tape.choices);
  return generateCase(choices, seed, *options);
}

uint64_t randomSeed() {
  std::random_device device;
  return device() % 1'000'000'000;
}

}  // namespace faultline::cli
