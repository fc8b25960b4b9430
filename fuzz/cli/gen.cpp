// faultline gen: cases from a seed or a tape.
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/command.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/generate_options.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/model_file.h"
#include "fuzz/cli/options.h"
#include "generators/case/case.h"
#include "generators/case/file.h"
#include "generators/choices/choices.h"

namespace faultline::cli {
namespace {

struct GenOptions {
  std::string from, out, json;
  std::optional<uint64_t> seed, index, count;
  bool tape = false;
  GenerateFlags generate;
};

struct Made {
  uint64_t index = 0, seed = 0;
  std::string text, path;
  std::set<std::string> traits;
};

Result<std::vector<Made>> makeAll(const GenOptions& options, uint64_t seed) {
  if (!options.from.empty()) {
    const auto text = readTextFile(options.from);
    if (!text) return tl::make_unexpected(text.error());
    const auto tape = readTape(*text);
    if (!tape) return tl::make_unexpected(inFile(tape.error(), options.from));
    const auto c = caseOfTape(*tape);
    if (!c) return tl::make_unexpected(inFile(c.error(), options.from));
    return std::vector<Made>{{0, c->seed, writeCase(*c), {}, caseTraits(*c)}};
  }
  const auto generate = generateOptions(options.generate);
  if (!generate) return tl::make_unexpected(generate.error());
  std::vector<Made> made;
  const uint64_t first = options.index.value_or(0);
  for (uint64_t index = first; index < first + options.count.value_or(1); ++index) {
    const uint64_t case_seed = caseSeed(seed, index);
    Choices choices = Choices::fromSeed(case_seed);
    const Case c = generateCase(choices, case_seed, *generate);
    std::string text = writeCase(c);
    if (options.tape) {
      Tape tape = choices.tape();
      noteInTape(tape, case_seed, options.generate);
      text = writeTape(tape);
    }
    made.push_back({index, case_seed, std::move(text), {}, caseTraits(c)});
  }
  return made;
}

Result<ExitCode> runGen(const GenOptions& options) {
  const Console console(options.json);
  if (options.count == uint64_t{0}) return fail(ErrorKind::Invalid, "--count: expected at least 1");
  if (options.count.value_or(1) > 1 && options.out.empty()) {
    return fail(ErrorKind::Invalid, "--count: more than one case needs a folder, --out DIR");
  }
  if (options.json == "-" && options.out.empty()) {
    return fail(ErrorKind::Invalid,
                "--json -: the case itself goes to stdout; give it a folder with --out DIR");
  }
  std::error_code status;
  if (!options.out.empty()) std::filesystem::create_directories(options.out, status);
  if (status) return fail(ErrorKind::Io, fmt::format("cannot make '{}': {}", options.out, status.message()));
  const uint64_t seed = options.seed ? *options.seed : randomSeed();
  auto made = makeAll(options, seed);
  if (!made) return tl::make_unexpected(made.error());

  Json result = jsonHead("gen");
  result["seed"] = seed;
  result["cases"] = Json::array();
  for (Made& one : *made) {
    one.path = "-";
    if (!options.out.empty()) {
      const char* extension = options.tape ? "tape" : "case";
      one.path =
          (std::filesystem::path(options.out) / fmt::format("{}-{}.{}", seed, one.index, extension)).string();
      console.line(one.path);
    }
    if (const auto written = writeText(one.path, one.text); !written)
      return tl::make_unexpected(written.error());
    result["cases"].push_back(
        {{"index", one.index}, {"seed", one.seed}, {"file", one.path}, {"traits", one.traits}});
  }
  const auto written = writeJson(options.json, result);
  return written ? Result<ExitCode>(ExitCode::Clean) : tl::make_unexpected(written.error());
}

}  // namespace

Action defineGen(CLI::App& app) {
  auto options = std::make_shared<GenOptions>();
  CLI::Option* from = app.add_option("TAPE", options->from, "the choices to make; without it: from the seed");
  addCount(app, "--seed", options->seed, "of the whole series; without it: a random one")->excludes(from);
  addCount(app, "--index", options->index, "the number of the first case in the series, from 0")
      ->excludes(from);
  addCount(app, "--count", options->count, "how many cases")->excludes(from);
  app.add_option("--out", options->out, "a folder for the files; without it: stdout")->type_name("DIR");
  app.add_flag("--tape", options->tape, "write the choices that were made, not the case")->excludes(from);
  addGenerate(app, options->generate);
  addJson(app, options->json);
  app.footer("  faultline gen --seed 1 --index 7");
  return [options] { return runGen(*options); };
}

}  // namespace faultline::cli
