#include "fuzz/cli/profile_table.h"

#include <fmt/format.h>

#include "faultline/ir.h"
#include "fuzz/cli/console.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/model_file.h"
#include "oracles/passes/pass_table.h"

namespace faultline::cli {
namespace {

constexpr uint64_t kPassCases = 20;

std::string shareText(uint64_t part, uint64_t of) {
  return of == 0 ? "" : fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(of));
}

std::string countsText(const std::map<std::string, uint64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text;
}

// The words behind a verdict, the worst first.
std::string detailOf(const PassRow& row) {
  std::vector<std::string> parts;
  if (!row.wrong.empty()) parts.push_back("wrong: " + countsText(row.wrong));
  if (!row.staying.empty()) parts.push_back("stays: " + countsText(row.staying));
  if (!row.findings.empty()) parts.push_back("left: " + countsText(row.findings));
  if (row.evidence_lost > 0) parts.push_back(fmt::format("{} profile nodes gone", row.evidence_lost));
  if (row.invalid > 0) parts.push_back(fmt::format("{} graphs not valid any more", row.invalid));
  if (row.verdict == PassVerdict::Crashes) parts.push_back(row.example);
  if (row.threw > 0) parts.push_back(fmt::format("threw on {}: {}", row.threw, row.example));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

Json rowJson(const PassRow& row) {
  return {{"name", row.name},
          {"meant_for", row.meant_for},
          {"verdict", toString(row.verdict)},
          {"graphs", row.graphs},
          {"changed", row.changed},
          {"threw", row.threw},
          {"invalid", row.invalid},
          {"ran", row.ran},
          {"evidence_lost", row.evidence_lost},
          {"clones_lost", row.clones_lost},
          {"answered", {{"before", row.answered_before}, {"after", row.answered_after}}},
          {"tensor_uses", {{"before", row.uses_before}, {"after", row.uses_after}}},
          {"findings", row.findings},
          {"staying", row.staying},
          {"wrong", row.wrong},
          {"example", row.example}};
}

}  // namespace

Result<ExitCode> runPassTable(const PassTableFlags& flags) {
  std::vector<ProfiledSample> samples;
  const uint64_t seed = flags.seed.value_or(1), cases = flags.cases.value_or(kPassCases);
  if (flags.file.empty()) {
    samples = generatedSamples(seed, cases);
  } else {
    NodePlaces places;
    const auto graph = loadGraphFile(flags.file, places);
    if (!graph) return tl::make_unexpected(graph.error());
    if (const auto valid = verifyGraphWithPlaces(**graph, places); !valid)
      return tl::make_unexpected(inFile(valid.error(), flags.file));
    auto sample = sampleOf(**graph);
    if (!sample) return tl::make_unexpected(inFile(sample.error(), flags.file));
    samples.push_back(std::move(*sample));
  }
  const std::vector<PassRow> rows = passTable(stockPasses(), samples);

  const Console console(flags.json);
  Table table({"pass", "changed", "before", "after", "verdict"});
  table.alignRight(1);
  table.alignRight(2);
  table.alignRight(3);
  for (const PassRow& row : rows) {
    if (row.verdict == PassVerdict::Idle) continue;
    table.add({row.name, std::to_string(row.changed), shareText(row.answered_before, row.uses_before),
               shareText(row.answered_after, row.uses_after), toString(row.verdict)});
  }
  console.paragraph(
      flags.file.empty()
          ? fmt::format("Each pass on {} propagated graphs of generated programs (seed {}): how many it "
                        "changed; of these, the share of tensor uses that have an answer before it, and "
                        "after it and propagation (it loses answers where that is more than {:.0f} "
                        "point less); and what is left of the protocol.",
                        samples.size(), seed, 100 * kShareThatMayGo)
          : "Each pass on the propagated graph of this file, without the counter that libtorch takes out "
            "before "
            "its passes too. Answers are not held against a run.");
  console.line();
  console.print(table.str());
  console.line();
  std::string idle;
  for (const PassRow& row : rows) {
    if (row.verdict == PassVerdict::Idle) idle += (idle.empty() ? "" : ", ") + row.name;
    const std::string detail = detailOf(row);
    if (!detail.empty()) console.paragraph(fmt::format("{}: {}", row.name, detail), 2);
  }
  if (!idle.empty()) console.paragraph("Changed nothing, so nothing is shown: " + idle);

  Json result = jsonHead("profile");
  result["seed"] = seed;
  result["graphs"] = samples.size();
  result["passes"] = Json::array();
  for (const PassRow& row : rows) result["passes"].push_back(rowJson(row));
  if (const auto written = writeJson(flags.json, result); !written)
    return tl::make_unexpected(written.error());
  return samples.empty() ? ExitCode::NothingChecked : ExitCode::Clean;
}

}  // namespace faultline::cli
