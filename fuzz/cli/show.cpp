// faultline show: a case, tape or graph for reading.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "faultline/graph_break.h"
#include "faultline/ir.h"
#include "fuzz/cli/command.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/generate_options.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/model_file.h"
#include "fuzz/cli/options.h"
#include "generators/case/case.h"
#include "generators/case/file.h"
#include "generators/choices/choices.h"
#include "generators/generate/generate.h"

namespace faultline::cli {
namespace {

struct ShowFlags {
  std::string file, json;
  bool ir = false;
};

std::string hookText(const HookSpec& hook, const torch::jit::Graph& graph) {
  const std::string on = !hook.seam.empty()                   ? hook.seam
                         : hook.input < graph.inputs().size() ? "%" + graph.inputs()[hook.input]->debugName()
                                                              : fmt::format("input {}", hook.input);
  const std::string text = fmt::format("{} on {}", hookWord(hook.kind), on);
  return hook.action == HookAction::Log ? text : fmt::format("{}: {}", text, hookWord(hook.action));
}

std::string expectationText(const Expectation& expectation) {
  std::string text = expectation.group;
  if (!expectation.from.empty() || !expectation.to.empty()) {
    text += "@" + expectation.from + (expectation.open_range ? ".." : "") + expectation.to;
  }
  return text + (expectation.signatures.empty() ? " pass"
                                                : fmt::format(" {}", fmt::join(expectation.signatures, " ")));
}

std::string backwardText(const std::vector<BackwardSpec>& backwards) {
  std::vector<std::string> words;
  for (const BackwardSpec& backward : backwards) {
    switch (backward.kind) {
      case BackwardSpec::Kind::All:
        words.push_back("from all outputs");
        break;
      case BackwardSpec::Kind::Output:
        words.push_back(fmt::format("from output {}", backward.output));
        break;
      case BackwardSpec::Kind::Double:
        words.push_back("double");
        break;
    }
  }
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string> planWords(const Case& c) {
  std::vector<std::string> words;
  if (c.plan.breaks != "none") words.push_back("breaks " + c.plan.breaks);
  for (const HookSpec& hook : c.plan.hooks) words.push_back("hook " + hookText(hook, *c.graph));
  if (c.plan.profile != "none") words.push_back("profile " + c.plan.profile);
  for (const std::string& pass : c.plan.passes) words.push_back("pass " + pass);
  if (c.plan.ranks != 1) words.push_back(fmt::format("{} ranks", c.plan.ranks));
  return words;
}

void printGraph(const Console& console, const torch::jit::Graph& graph, bool ir) {
  console.line();
  console.print(ir ? writeGraph(graph) : graphTable(graph, kWidth));
}

void printCase(const Console& console, const Case& c, bool ir) {
  console.line(fmt::format("Case, seed {}, {}", c.seed, plural(c.runs.size(), "run")));
  for (const auto& [name, text] : c.notes) console.paragraph(fmt::format("note {}: {}", name, text), 2);
  for (size_t i = 0; i < c.runs.size(); ++i) {
    const CaseRun& run = c.runs[i];
    console.line(fmt::format("Run {}{}, backward: {}", i + 1, run.grad_mode ? "" : " under no_grad",
                             backwardText(run.backwards)));
    for (size_t k = 0; k < run.inputs.size(); ++k) {
      const auto& names = c.graph->inputs();
      const std::string name = k < names.size() ? "%" + names[k]->debugName() : fmt::format("input {}", k);
      console.paragraph(fmt::format("{} = {}", name, writeInputSpec(run.inputs[k])), 2);
    }
  }
  if (const auto words = planWords(c); !words.empty()) {
    console.paragraph(fmt::format("Plan: {}", fmt::join(words, "; ")));
  }
  for (const Expectation& expectation : c.expectations)
    console.line("Expected: " + expectationText(expectation));
  for (const UnknownDirective& unknown : c.unknown) {
    console.line(fmt::format("Not known to this version: {}: {}", unknown.name, unknown.value));
  }
  printGraph(console, *c.graph, ir);
}

Json caseJson(const Case& c) {
  Json json = {{"seed", c.seed}, {"runs", Json::array()}};
  for (const CaseRun& run : c.runs) {
    Json inputs = Json::array();
    for (const InputSpec& input : run.inputs) inputs.push_back(writeInputSpec(input));
    json["runs"].push_back(
        {{"inputs", inputs}, {"grad_mode", run.grad_mode}, {"backward", backwardText(run.backwards)}});
  }
  json["plan"] = planWords(c);
  json["expectations"] = Json::array();
  for (const Expectation& expectation : c.expectations)
    json["expectations"].push_back(expectationText(expectation));
  json["traits"] = caseTraits(c);
  json["graph"] = writeGraph(*c.graph);
  return json;
}

void printTape(const Console& console, const Tape& tape) {
  console.line(fmt::format("Tape of {}", plural(tape.choices.size(), "choice")));
  for (const auto& [name, value] : tape.options) console.paragraph(fmt::format("{}: {}", name, value), 2);
  for (const TapeSpan& span : tape.spans) {
    console.paragraph(fmt::format("{}..{} {}", span.begin, span.end, span.label),
                      2 + 2 * std::min<size_t>(span.depth, 20));
  }
}

Result<ExitCode> runShow(const ShowFlags& flags) {
  // Archives are no text, so the kind is asked of the bytes.
  const auto bytes = readFile(flags.file);
  if (!bytes) return tl::make_unexpected(bytes.error());
  // As IR it can be read again: all but the graph are comments.
  const Console console(flags.json, flags.ir ? "# " : "");
  Json result = jsonHead("show");
  if (fileKind(*bytes) == FileKind::Tape) {
    const auto tape = readTape(*bytes);
    if (!tape) return tl::make_unexpected(inFile(tape.error(), flags.file));
    const auto c = caseOfTape(*tape);
    if (!c) return tl::make_unexpected(inFile(c.error(), flags.file));
    printTape(console, *tape);
    console.line("\nIt gives:");
    printCase(console, *c, flags.ir);
    result["kind"] = "tape";
    result["choices"] = tape->choices.size();
    result["case"] = caseJson(*c);
  } else if (fileKind(*bytes) == FileKind::Case) {
    const auto c = readCase(*bytes);
    if (!c) return tl::make_unexpected(inFile(c.error(), flags.file));
    printCase(console, *c, flags.ir);
    result["kind"] = "case";
    result["case"] = caseJson(*c);
  } else {
    NodePlaces places;
    const auto graph = fileKind(*bytes) == FileKind::Archive ? loadGraphFile(flags.file, places)
                                                             : graphOfText(*bytes, flags.file, places);
    if (!graph) return tl::make_unexpected(graph.error());
    const auto valid = verifyGraphWithPlaces(**graph, places);
    console.paragraph(valid ? "Graph, valid"
                            : "Graph, NOT valid: " + inFile(valid.error(), flags.file).str());
    printGraph(console, **graph, flags.ir);
    result["kind"] = "graph";
    result["valid"] = valid.has_value();
    result["graph"] = writeGraph(**graph);
  }
  const auto written = writeJson(flags.json, result);
  return written ? Result<ExitCode>(ExitCode::Clean) : tl::make_unexpected(written.error());
}

}  // namespace

Action defineShow(CLI::App& app) {
  auto flags = std::make_shared<ShowFlags>();
  app.add_option("FILE", flags->file, "a case, a tape, IR, TorchScript source or a .pt archive")->required();
  app.add_flag("--ir", flags->ir, "the graph as IR text, not as a table");
  addJson(app, flags->json);
  app.footer("  faultline show found/view_of_leaf/case.case");
  return [flags] { return runShow(*flags); };
}

}  // namespace faultline::cli
