// faultline profile: what the profile nodes of a graph say about each use.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "faultline/ir.h"
#include "faultline/profile.h"
#include "fuzz/cli/command.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/model_file.h"
#include "fuzz/cli/options.h"
#include "fuzz/cli/profile_pruning.h"
#include "fuzz/cli/profile_savings.h"
#include "fuzz/cli/profile_table.h"
#include "fuzz/cli/profile_uses.h"
#include "fuzz/cli/words.h"

namespace faultline::cli {
namespace {

struct ProfileFlags {
  std::string file, json;
  std::vector<std::string> explain;
  bool validate = false, about_to_run = false;
  bool passes = false, pruning = false;
  std::optional<uint64_t> cases, seed;
};

std::string listText(const ProfileDimensions& fields) {
  std::vector<std::string> words;
  for (const auto& field : fields) words.push_back(field.known() ? std::to_string(field.value) : "*");
  return fmt::format("{}", fmt::join(words, ", "));
}

// "Float(*, 3, strides=[3, 1], device=cpu), conditional", or the state alone where no field is known. From
// the fields: the exact text of the type, which `--json` has, spells out what libtorch keeps besides them.
std::string answerText(const ProfileLookup& answer) {
  std::vector<std::string> words;
  if (!answer.sizes.empty()) words.push_back(listText(answer.sizes));
  const auto known = [](const auto& field) { return field.known(); };
  if (std::any_of(answer.strides.begin(), answer.strides.end(), known)) {
    words.push_back("strides=[" + listText(answer.strides) + "]");
  }
  if (answer.requires_grad.known())
    words.push_back(fmt::format("requires_grad={:d}", answer.requires_grad.value));
  if (answer.device.known()) words.push_back("device=" + answer.device.value.str());
  const std::string dtype = answer.dtype.known() ? c10::toString(answer.dtype.value) : "Tensor";
  const std::string type = answer.type == nullptr ? toString(answer.state)
                           : words.empty()        ? dtype
                                                  : fmt::format("{}({})", dtype, fmt::join(words, ", "));
  return type + (answer.conditional ? ", conditional" : "");
}

// IR text with a comment under each node for each of its uses that has an answer; it can be read again.
std::string annotatedGraph(const std::vector<ProfiledUse>& uses, WrittenGraph written) {
  for (const ProfiledUse& use : uses) {
    if (use.answer.state == ProfileState::Unknown) continue;
    written.comment(use.use.user, fmt::format("{}: {}", use.value, answerText(use.answer)));
  }
  return written.text();
}

Result<std::vector<const ProfiledUse*>> explained(const std::string& word,
                                                  const std::vector<ProfiledUse>& uses, const Graph& graph) {
  const std::string wanted = word.rfind('%', 0) == 0 ? word : "%" + word;
  std::vector<const ProfiledUse*> found;
  std::vector<std::string> known;
  for (const ProfiledUse& use : uses) {
    known.push_back(use.value);
    if (use.value == wanted) found.push_back(&use);
  }
  const auto& values = graph.debugNames();
  if (const auto value = values.find(wanted.substr(1)); found.empty() && value != values.end()) {
    return fail(ErrorKind::Invalid,
                fmt::format("--explain {}: {}", wanted,
                            value->second->type()->kind() == c10::TypeKind::TensorType
                                ? "no op uses it"
                                : "is no tensor, but " + writeType(*value->second->type())));
  }
  if (found.empty()) {
    Error error = unknownWord("value", wanted, known);
    error.message = "--explain: no use of it by an op: " + error.message;
    return tl::make_unexpected(error);
  }
  return found;
}

void printExplanation(const Console& console, const ProfiledUse& use, const WrittenGraph& written) {
  const ProfileExplanation& answer = use.answer;
  console.line(fmt::format("{} as input {} of {}, in {}", use.value, use.use.offset, use.user, use.graph));
  console.paragraph(fmt::format("answer: {}: {}", toString(answer.state), answerText(answer)), 2);
  std::vector<std::string> evidence;
  for (const Node* node : answer.from) evidence.push_back(nodeName(node, written));
  if (!evidence.empty()) {
    console.paragraph(fmt::format("evidence: {}{}", fmt::join(evidence, ", "),
                                  answer.place.empty() ? "" : " (" + answer.place + ")"),
                      2);
  }
  if (answer.conditional)
    console.paragraph("conditional: the evidence does not cover this use; guard before acting", 2);
  if (answer.why_not.kind != ReasonKind::None) console.paragraph("why not more: " + answer.why_not.text(), 2);
  for (const FieldText& field : missingFields(answer)) {
    if (!field.why.empty())
      console.paragraph(fmt::format("{}: {}: {}", field.name, field.state, field.why), 2);
  }
}

Json findingJson(const ProfileFinding& finding, const WrittenGraph& written) {
  return {{"kind", finding.kind},
          {"node", finding.node == nullptr ? Json() : Json(nodeName(finding.node, written))},
          {"value", finding.value == nullptr ? Json() : Json("%" + finding.value->debugName())},
          {"message", finding.message}};
}

void printSummary(const Console& console, const std::vector<ProfiledUse>& uses,
                  const std::vector<ProfileFinding>& findings) {
  std::map<std::string, uint64_t> states;
  uint64_t conditional = 0;
  for (const ProfiledUse& use : uses) {
    ++states[toString(use.answer.state)];
    conditional += use.answer.conditional ? 1 : 0;
  }
  std::string text = fmt::format("{} of tensors:", plural(uses.size(), "use"));
  const char* separator = " ";
  for (const auto& [state, count] : states) {
    text += fmt::format("{}{} {}", separator, count, state);
    separator = ", ";
  }
  console.paragraph(uses.empty() ? "No tensor is used."
                                 : text + fmt::format("; {} conditional", conditional));
  console.line(findings.empty() ? "No findings: every answer stands at its use, and nothing contradicts."
                                : plural(findings.size(), "finding") + ":");
  for (const ProfileFinding& finding : findings) {
    console.paragraph(fmt::format("{}: {}", finding.kind, finding.message), 2);
  }
}

constexpr const char* kHowToProfile =
    "The graph has no prim::profile nodes, so nothing is known of its tensors. They come from runs: of a "
    "graph that torch::jit::ProfilingRecord has instrumented, or of any graph under faultline::Recorder, "
    "whose recording withProfileNodes writes into a copy of it (faultline/recorder.h). To see some: "
    "faultline gen --features +profile.";

size_t countProfileNodes(const WrittenGraph& written) {
  return static_cast<size_t>(std::count_if(
      written.nodes().begin(), written.nodes().end(),
      [](const Node* node) { return node->kind() == torch::jit::prim::profile && !node->inputs().empty(); }));
}

Result<ExitCode> runProfile(const ProfileFlags& flags) {
  if (flags.passes) return runPassTable({flags.file, flags.cases, flags.seed, flags.json});
  if (flags.pruning && !flags.file.empty())
    return fail(ErrorKind::Invalid, "--pruning has programs of its own: leave out FILE");
  if (flags.pruning) return runPruningTable(flags.json);
  if (flags.cases || flags.seed) return fail(ErrorKind::Invalid, "--cases and --seed belong to --passes");
  if (flags.file.empty())
    return fail(ErrorKind::Invalid,
                "FILE is missing: a graph with profile nodes. Only --passes and --pruning do without one");
  NodePlaces places;
  const auto graph = loadGraphFile(flags.file, places);
  if (!graph) return tl::make_unexpected(graph.error());
  // What is wrong with profile nodes is a finding; the graph without them has to be one.
  if (const auto valid = verifyGraphWithPlaces(**graph, places); !valid) {
    auto without = (*graph)->copy();
    removeProfileNodes(*without);
    if (!verifyGraph(*without)) return tl::make_unexpected(inFile(valid.error(), flags.file));
  }
  const Console console(flags.json);
  const WrittenGraph written(**graph);
  const std::vector<ProfiledUse> uses = profiledUses(**graph, written);
  const std::vector<ProfileFinding> findings = findProfileViolations(**graph, {flags.about_to_run});
  const Json savings = savingsOf(**graph);

  std::vector<const ProfiledUse*> asked;
  for (const std::string& word : flags.explain) {
    const auto found = explained(word, uses, **graph);
    if (!found) return tl::make_unexpected(found.error());
    asked.insert(asked.end(), found->begin(), found->end());
  }
  for (const ProfiledUse* use : asked) printExplanation(console, *use, written);
  if (asked.empty()) {
    console.print(annotatedGraph(uses, written));
    console.line();
    printSummary(console, uses, findings);
    printSavings(console, savings);
  }
  const size_t profile_nodes = countProfileNodes(written);
  if (profile_nodes == 0) console.paragraph(kHowToProfile);

  Json result = jsonHead("profile");
  result["profile_nodes"] = profile_nodes;
  result["uses"] = Json::array();
  for (const ProfiledUse& use : uses) result["uses"].push_back(useJson(use, written));
  result["findings"] = Json::array();
  for (const ProfileFinding& finding : findings) result["findings"].push_back(findingJson(finding, written));
  result["savings"] = savings;
  if (const auto written = writeJson(flags.json, result); !written)
    return tl::make_unexpected(written.error());
  return flags.validate && !findings.empty() ? ExitCode::Found : ExitCode::Clean;
}

}  // namespace

Action defineProfile(CLI::App& app) {
  auto flags = std::make_shared<ProfileFlags>();
  app.add_option("FILE", flags->file,
                 "IR text or a case with prim::profile nodes: see faultline/recorder.h on how to get them");
  addRepeated(app, "--explain", flags->explain, "%VALUE",
              "each use of this value: its answer, the evidence, and why no more is known; repeatable");
  app.add_flag("--about-to-run", flags->about_to_run,
               "a profile counter that is left in the graph is a finding");
  app.add_flag("--validate", flags->validate, "exit code 1 when there are findings");
  app.add_flag(
      "--passes", flags->passes,
      "instead: what each of libtorch's passes does to propagated graphs, of generated programs or of FILE");
  addCount(app, "--cases", flags->cases, "with --passes: how many programs (default: 20)");
  addCount(app, "--seed", flags->seed, "with --passes: which programs (default: 1)");
  app.add_flag("--pruning", flags->pruning,
               "instead: gradients that nobody needs, left out by applyProfile and by libtorch's executor");
  addJson(app, flags->json);
  app.footer("  faultline profile graph.ir --explain %v\n  faultline profile --passes --json passes.json");
  return [flags] { return runProfile(*flags); };
}

}  // namespace faultline::cli
