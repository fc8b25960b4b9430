#include "fuzz/cli/campaign_report.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "fuzz/cli/json.h"

namespace faultline::cli {
namespace {

uint64_t sum(const std::map<std::string, uint64_t>& counts) {
  uint64_t total = 0;
  for (const auto& [reason, count] : counts) total += count;
  return total;
}

// The most frequent first: "throws 3, plan_unsupported 1".
std::string listed(const std::map<std::string, uint64_t>& counts) {
  std::vector<std::pair<std::string, uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [reason, count] : sorted)
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", reason, kUnbroken, count);
  return text;
}

std::string compact(uint64_t count) {
  if (count < 100'000) return std::to_string(count);
  if (count < 10'000'000) return fmt::format("{:.0f}k", static_cast<double>(count) / 1e3);
  return fmt::format("{:.0f}M", static_cast<double>(count) / 1e6);
}

std::string rate(uint64_t cases, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f}/s", static_cast<double>(cases) / seconds) : "-";
}

// "5 known issues and 1 new failure", as they are listed below it.
std::string knownAndNew(const CampaignSummary& summary) {
  std::set<std::string> known;
  for (const FailureGroup& failure : summary.failures) {
    if (!failure.known.empty()) known.insert(failure.known);
  }
  const std::string fresh = plural(summary.newFailures(), "new failure");
  return known.empty() ? fresh : plural(known.size(), "known issue") + " and " + fresh;
}

// Prose is wrapped. A traceback is not, nor is code: marks stand below what they point at.
void printDetail(const Console& console, const std::string& detail) {
  bool traceback = false;
  std::istringstream lines(detail);
  for (std::string line; std::getline(lines, line);) {
    traceback = traceback || line.rfind("Traceback of ", 0) == 0;
    if (traceback || line.rfind(' ', 0) == 0) {
      console.line("  " + line);
    } else {
      console.paragraph(line, 2);
    }
  }
}

}  // namespace

std::string progressText(const CampaignProgress& progress) {
  const CampaignSummary& so_far = progress.so_far;
  const uint64_t skipped = sum(so_far.skipped);
  std::string text = fmt::format("{:.0f} s  {}, {}", progress.seconds, plural(so_far.cases, "case"),
                                 rate(so_far.cases, progress.seconds));
  if (so_far.cases > 0) {
    const auto valid = static_cast<double>(so_far.cases - skipped) / static_cast<double>(so_far.cases);
    text += fmt::format(", {:.0f} % valid", std::floor(100 * valid));
  }
  text += fmt::format(", {}", plural(so_far.failures.size(), "failure"));
  if (skipped > 0) text += ", skipped: " + listed(so_far.skipped);
  return text;
}

void printTallies(const Console& console, const CampaignSummary& summary) {
  Table table({"oracle", "lane", "applies", "passed", "failed", "skipped", "compared"});
  for (size_t column = 2; column < 7; ++column) table.alignRight(column);
  std::map<std::string, uint64_t> reasons;
  uint64_t rounding = 0;
  for (const auto& [oracle, lanes] : summary.oracles) {
    for (const auto& [lane, tally] : lanes) {
      // Cases that an oracle does not apply to are the difference to all cases, and no news.
      const uint64_t skipped = tally.applicable - std::min(tally.applicable, tally.passed + tally.failed);
      table.add({oracle, lane, compact(tally.applicable), compact(tally.passed), compact(tally.failed),
                 compact(skipped), compact(tally.comparisons)});
      for (const auto& [reason, count] : tally.reasons) {
        if (reason != "not_applicable") reasons[reason] += count;
      }
      rounding += tally.rounding;
    }
  }
  if (table.empty()) return;
  console.print(table.str());
  if (!reasons.empty()) console.paragraph("Skipped verdicts: " + listed(reasons));
  if (rounding > 0) console.line(fmt::format("Rounding, confirmed in another precision: {}", rounding));
}

void printTotals(const Console& console, const CampaignSummary& summary) {
  std::string text = fmt::format("{} in {:.1f} s ({}): {} passed", plural(summary.cases, "case"),
                                 summary.seconds, rate(summary.cases, summary.seconds), summary.passed);
  if (summary.failed > 0) text += fmt::format(", {} failed ({})", summary.failed, knownAndNew(summary));
  if (summary.flaky > 0) text += fmt::format(", {} flaky", summary.flaky);
  if (const uint64_t skipped = sum(summary.skipped); skipped > 0) {
    text += fmt::format(", {} skipped ({})", skipped, listed(summary.skipped));
  }
  if (summary.interrupted_by != 0) text += fmt::format("; interrupted by signal {}", summary.interrupted_by);
  if (summary.stopped_early) text += "; stopped at the failures asked for";
  console.paragraph(text);
}

void printShares(const Console& console, const CampaignSummary& summary) {
  std::vector<std::pair<std::string, uint64_t>> traits;
  for (const auto& [trait, count] : summary.traits) {
    // Single ops are too many for a line; their counts stand in the JSON.
    if (trait.rfind("op:", 0) != 0) traits.emplace_back(trait, count);
  }
  if (traits.empty()) return;
  std::string counted;
  for (const auto& [name, share] : summary.lane_shares) {
    counted += fmt::format("{} {}{}{}%", counted.empty() ? "" : ",", name, kUnbroken,
                           percentage(share.hits, share.of));
  }
  std::stable_sort(traits.begin(), traits.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [trait, count] : traits) {
    text += fmt::format("{} {}{}{}%", text.empty() ? "" : ",", trait, kUnbroken,
                        percentage(count, summary.cases));
  }
  console.paragraph("Shares of the cases:" + text);
  if (!counted.empty()) console.paragraph("Shares counted by lanes:" + counted);
}

void printFailures(const Console& console, const CampaignSummary& summary, const PasteCommand& command) {
  Table known({"known issue", "lane", "cases", "signature"});
  known.alignRight(2);
  for (const FailureGroup& failure : summary.failures) {
    if (!failure.known.empty())
      known.add({failure.known, failure.lane, std::to_string(failure.count), failure.signature});
  }
  if (!known.empty()) {
    console.line();
    console.print(known.str());
    console.paragraph("`faultline list known` says what each is; --ignore-known shows them as failures.");
  }
  for (const FailureGroup& failure : summary.failures) {
    if (!failure.known.empty()) continue;
    console.line();
    console.paragraph(fmt::format("Failure in lane {}: {}", failure.lane, plural(failure.count, "case")));
    printDetail(console, failure.detail);
    console.line(failure.signature);
    console.line(failure.case_path.empty() ? "(not saved: --out DIR saves cases)" : failure.case_path);
    console.line(command(failure));
  }
}

Result<ExitCode> finishCampaign(const Result<CampaignSummary>& outcome, const std::string& json_path) {
  if (!outcome) {
    if (outcome.error().kind != ErrorKind::Io) return tl::make_unexpected(outcome.error());
    complainOf("faultline: " + outcome.error().str());
    return ExitCode::Broken;
  }
  const auto written = writeJson(json_path, Json(outcome->toJson()));
  if (!written) return tl::make_unexpected(written.error());
  return static_cast<ExitCode>(outcome->exitCode());
}

}  // namespace faultline::cli
