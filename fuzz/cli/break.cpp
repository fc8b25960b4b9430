// faultline break: plan, compile, print and run a broken graph.
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "faultline/graph_break.h"
#include "faultline/ir.h"
#include "fuzz/cli/break_picture.h"
#include "fuzz/cli/break_policy.h"
#include "fuzz/cli/break_report.h"
#include "fuzz/cli/break_run.h"
#include "fuzz/cli/break_what_if.h"
#include "fuzz/cli/command.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/deadline.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/last_words.h"
#include "fuzz/cli/model_file.h"
#include "fuzz/cli/options.h"
#include "oracles/exec/prepare.h"

namespace faultline::cli {
namespace {

struct BreakFlags {
  std::string file, json;
  std::vector<std::string> inputs, force_eager, what_if;
  PolicyFlags policy;
  PictureFlags pictures;
  std::optional<double> case_timeout;
  bool exec = false, dry_run = false, summary = false;
};

constexpr double kSeconds = 30;

// The plan is for all runs of a case; where these differ in sizes, no bytes are known to it. What is printed
// and executed is the first run.
void measureAsInFirstRun(BreakPlan& plan, const torch::jit::Graph& graph, const Case& c) {
  std::map<std::string, int64_t> bytes;
  const std::vector<InputSpec>& inputs = c.runs.front().inputs;
  for (size_t i = 0; i < inputs.size() && i < graph.inputs().size(); ++i) {
    const InputSpec& spec = inputs[i].kind == InputSpec::Kind::SameAs ? inputs[inputs[i].same_as] : inputs[i];
    if (spec.kind != InputSpec::Kind::Tensor) continue;
    bytes[graph.inputs()[i]->debugName()] =
        c10::multiply_integers(spec.sizes) * static_cast<int64_t>(c10::elementSize(spec.dtype));
  }
  for (PlannedPiece& piece : plan.pieces) {
    piece.bytes = 0;
    for (const std::string& parameter : piece.parameters) piece.bytes += bytes[parameter];
  }
}

Result<CompileOptions> compileOptions(const BreakFlags& flags, size_t pieces) {
  CompileOptions options;
  for (const std::string& text : flags.force_eager) {
    const auto piece = parseCount(text);
    if (!piece) return fail(ErrorKind::Invalid, "--force-eager: " + piece.error().message);
    if (*piece >= pieces) {
      return fail(ErrorKind::Invalid, fmt::format("--force-eager {}: the last of {} is piece {}", *piece,
                                                  plural(pieces, "piece"), pieces - 1));
    }
    options.force_eager.push_back(*piece);
  }
  return options;
}

Result<ExitCode> runBreak(const BreakFlags& flags) {
  if (auto free = checkPictures(flags.pictures, flags.json); !free) return tl::make_unexpected(free.error());
  const auto loaded = loadModelFile(flags.file, flags.inputs);
  if (!loaded) return tl::make_unexpected(loaded.error());
  auto prepared = prepareCase(*loaded);
  if (!prepared) return tl::make_unexpected(prepared.error());
  settleTypes(*prepared->graph, loaded->runs);
  // Measuring runs the program too.
  std::optional<Deadline> deadline;
  const double seconds = flags.case_timeout.value_or(kSeconds);
  const auto runsOnlySoLong = [&] {
    deadline.emplace(seconds, fmt::format("faultline break: the program did not end within {:g} s; "
                                          "--case-timeout gives it longer",
                                          seconds));
  };
  runsOnlySoLong();
  const auto policy = policyOf(flags.policy, *loaded, *prepared);
  if (!policy) return tl::make_unexpected(policy.error());
  auto plan = planBreaks(*prepared->graph, *policy);
  if (!plan) return tl::make_unexpected(plan.error());
  deadline.reset();
  measureAsInFirstRun(*plan, *prepared->graph, *loaded);
  const auto other_caps = whatIf(flags.what_if, *policy, *prepared->graph);
  if (!other_caps) return tl::make_unexpected(other_caps.error());
  const auto options = compileOptions(flags, plan->pieces.size());
  if (!options) return tl::make_unexpected(options.error());

  // Everything that can refuse the program comes before the first line of output.
  std::optional<CompiledGraph> compiled;
  std::optional<BreakRun> run;
  if (!flags.dry_run) {
    auto made = compile(prepared->graph, *plan, *options);
    if (!made) return tl::make_unexpected(made.error());
    compiled = std::move(*made);
  }
  if (flags.exec) {
    leaveLastWords("`faultline check` runs programs in workers, which may die");
    runsOnlySoLong();
    auto done = runBroken(*compiled, *plan, prepared->graph, *loaded);
    if (!done) return tl::make_unexpected(done.error());
    run = std::move(*done);
    deadline.reset();
  }

  const std::string on_stdout = pictureOnStdout(flags.pictures);
  const Console console(on_stdout.empty() ? flags.json : on_stdout);
  Json result = planJson(*plan);
  printPlan(console, *plan, flags.summary);
  describeWhatIf(*other_caps, result);
  printWhatIf(console, *other_caps);
  if (compiled) {
    describeCompiled(*compiled, result);
    if (flags.summary) {
      printCompiledPieces(console, *compiled);
    } else {
      printCompiled(console, *prepared->graph, *plan, *compiled);
    }
  }
  if (run) {
    describeRun(*run, result);
    printRun(console, *run, flags.summary);
    if (auto drawn = drawTimeline(flags.pictures, compiled->timeline()); !drawn) {
      return tl::make_unexpected(drawn.error());
    }
  }
  const ExitCode code = !run || run->good() ? ExitCode::Clean : ExitCode::Found;
  if (auto written = writeJson(flags.json, result); !written) return tl::make_unexpected(written.error());
  // Last, because dot may be missing, or never done with a large graph: nothing else is lost by that.
  std::fflush(stdout);
  const auto drawn = drawPlan(flags.pictures, *prepared->graph, *plan, seconds);
  return drawn ? Result<ExitCode>(code) : tl::make_unexpected(drawn.error());
}

}  // namespace

Action defineBreak(CLI::App& app) {
  auto flags = std::make_shared<BreakFlags>();
  app.add_option("FILE", flags->file, "TorchScript source, a .pt archive, IR or a case")->required();
  addInput(app, flags->inputs);
  addPolicy(app, flags->policy);
  CLI::Option* dry = app.add_flag("--dry-run", flags->dry_run, "only the plan: compile nothing");
  app.add_flag("--summary", flags->summary,
               "no tables and no events, and of long lists how they begin and end: for large models");
  addWords(app, "--force-eager", flags->force_eager, "K,…", "treat piece K as if it could not be compiled")
      ->excludes(dry);
  CLI::Option* exec =
      app.add_flag("--exec", flags->exec, "run it with a hook on every parameter, next to eager PyTorch");
  exec->excludes(dry);
  addDuration(
      app, "--case-timeout", flags->case_timeout,
      "a program that runs longer is ended: with --exec, and to measure times; and so is what draws --svg; "
      "default: 30s");
  addPictures(app, flags->pictures, exec);
  addWords(app, "--what-if", flags->what_if, "BYTES,…",
           "--policy ddp: what other caps for buckets would give");
  addJson(app, flags->json);
  app.footer(
      "  faultline break corpus/examples/mlp4.py --input 'x=float32[16,8]' \\\n"
      "      --after linear --after relu_1 --exec\n\n"
      "Exit code: 0 also where a cut is refused, which the plan says with its reason;\n"
      "1: --exec found another result or a broken promise about hooks; 2: bad input,\n"
      "an unknown name, a program that throws or does not end, a picture that cannot be\n"
      "drawn.");
  return [flags] { return runBreak(*flags); };
}

}  // namespace faultline::cli
