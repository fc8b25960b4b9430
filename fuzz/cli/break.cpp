// faultline break: plan, compile, print and run a broken graph.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "faultline/graph_break.h"
#include "faultline/ir.h"
#include "fuzz/cli/break_report.h"
#include "fuzz/cli/break_run.h"
#include "fuzz/cli/command.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/model_file.h"
#include "fuzz/cli/options.h"
#include "oracles/exec/prepare.h"

namespace faultline::cli {
namespace {

struct BreakFlags {
  std::string file, policy, timeline, json;
  std::vector<std::string> inputs, after, force_eager;
  std::optional<uint64_t> every;
  bool exec = false, dry_run = false;
};

// "none", "every:N", "after:a,b".
Result<BreakPolicy> parsePolicy(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string word = text.substr(0, colon);
  const std::string argument = colon < text.size() ? text.substr(colon + 1) : "";
  if (word == "none" && colon == text.size()) return BreakPolicy::none();
  if (word == "every") {
    const auto ops = parseCount(argument);
    if (!ops) return fail(ErrorKind::Invalid, "--policy every:N: " + ops.error().message);
    return BreakPolicy::every(*ops);
  }
  if (word == "after" && !argument.empty()) return BreakPolicy::after(CLI::detail::split(argument, ','));
  return fail(ErrorKind::Invalid,
              fmt::format("--policy: expected none, every:N or after:NAME,…, not '{}'", text));
}

Result<BreakPolicy> policyOf(const BreakFlags& flags, const Case& c, const PreparedCase& prepared) {
  if (!flags.policy.empty()) return parsePolicy(flags.policy);
  if (flags.every) return BreakPolicy::every(*flags.every);
  if (!flags.after.empty()) return BreakPolicy::after(flags.after);
  // A case brings its own plan.
  return readBreakPolicy(c, prepared);
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
  if (flags.timeline == "-" && flags.json == "-") {
    return fail(ErrorKind::Invalid, "--timeline -: stdout is taken by --json -");
  }
  const auto loaded = loadModelFile(flags.file, flags.inputs);
  if (!loaded) return tl::make_unexpected(loaded.error());
  auto prepared = prepareCase(*loaded);
  if (!prepared) return tl::make_unexpected(prepared.error());
  settleTypes(*prepared->graph, loaded->runs);
  const auto policy = policyOf(flags, *loaded, *prepared);
  if (!policy) return tl::make_unexpected(policy.error());
  const auto plan = planBreaks(*prepared->graph, *policy);
  if (!plan) return tl::make_unexpected(plan.error());
  const auto options = compileOptions(flags, plan->pieces.size());
  if (!options) return tl::make_unexpected(options.error());

  // Everything that can refuse comes before the first line of output.
  std::optional<CompiledGraph> compiled;
  std::optional<BreakRun> run;
  if (!flags.dry_run) {
    auto made = compile(prepared->graph, *plan, *options);
    if (!made) return tl::make_unexpected(made.error());
    compiled = std::move(*made);
  }
  if (flags.exec) {
    auto done = runBroken(*compiled, *plan, prepared->graph, *loaded);
    if (!done) return tl::make_unexpected(done.error());
    run = std::move(*done);
  }

  const Console console(flags.timeline == "-" ? flags.timeline : flags.json);
  Json result = planJson(*plan);
  printPlan(console, *plan);
  if (compiled) {
    describeCompiled(*compiled, result);
    printCompiled(console, *prepared->graph, *compiled);
  }
  if (run) {
    describeRun(*run, result);
    printRun(console, *run);
    const auto traced = writeText(flags.timeline, compiled->timeline().chromeTrace());
    if (!traced) return tl::make_unexpected(traced.error());
  }
  const ExitCode code = !run || run->good() ? ExitCode::Clean : ExitCode::Found;
  const auto written = writeJson(flags.json, result);
  return written ? Result<ExitCode>(code) : tl::make_unexpected(written.error());
}

}  // namespace

Action defineBreak(CLI::App& app) {
  auto flags = std::make_shared<BreakFlags>();
  app.add_option("FILE", flags->file, "TorchScript source, a .pt archive, IR or a case")->required();
  addInput(app, flags->inputs);
  CLI::Option* after =
      addWords(app, "--after", flags->after, "NAME,…", "cut behind this op: linear, relu_1; repeatable");
  CLI::Option* every = addCount(app, "--every", flags->every, "cut behind every N-th op")->excludes(after);
  app.add_option("--policy", flags->policy,
                 "none, every:N or after:NAME,…; default: what a case's plan says, else none")
      ->type_name("POLICY")
      ->excludes(after)
      ->excludes(every);
  CLI::Option* dry = app.add_flag("--dry-run", flags->dry_run, "only the plan: compile nothing");
  addWords(app, "--force-eager", flags->force_eager, "K,…", "treat piece K as if it could not be compiled")
      ->excludes(dry);
  CLI::Option* exec =
      app.add_flag("--exec", flags->exec, "run it with a hook on every parameter, next to eager PyTorch");
  exec->excludes(dry);
  app.add_option("--timeline", flags->timeline, "write what happened when, as a Chrome trace; '-' is stdout")
      ->type_name("FILE")
      ->needs(exec);
  addJson(app, flags->json);
  app.footer(
      "  faultline break corpus/examples/mlp4.py --input 'x=float32[16,8]' \\\n"
      "      --after linear --after relu_1 --exec");
  return [flags] { return runBreak(*flags); };
}

}  // namespace faultline::cli
