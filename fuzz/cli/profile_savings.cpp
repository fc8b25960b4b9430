#include "fuzz/cli/profile_savings.h"

#include <fmt/format.h>

#include "faultline/apply_profile.h"

namespace faultline::cli {
namespace {

constexpr size_t kMostUnknown = 8;

std::string bytesText(int64_t bytes) {
  if (std::abs(bytes) < 4096) return fmt::format("{} bytes", bytes);
  return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
}

}  // namespace

Json savingsOf(const Graph& graph) {
  const auto applied = applyProfile(const_cast<Graph&>(graph).copy());
  if (!applied) return {{"refused", applied.error().message}};
  const ApplyReport& report = applied->report();
  Json unknown = Json::array();
  for (const ConsumedInput& input : report.unknown)
    unknown.push_back({{"op", input.op}, {"offset", input.offset}, {"why", input.why}});
  return {{"parts", report.parts},
          {"known", report.known},
          {"gradients", report.pruned},
          {"backward_nodes", report.backward_nodes_saved},
          {"captured", report.captured_saved},
          {"captured_bytes", report.captured_bytes_saved},
          {"captured_unsized", report.captured_unsized},
          {"unknown", unknown}};
}

void printSavings(const Console& console, const Json& savings) {
  if (savings.contains("refused")) {
    console.paragraph("Nothing can be pruned: " + savings["refused"].get<std::string>());
    return;
  }
  const auto number = [&](const char* name) { return savings[name].get<int64_t>(); };
  const auto& unknown = savings["unknown"];
  std::string text = fmt::format(
      "Pruning leaves out {}, {} and {} kept for the backward ({}{}); requires_grad is known of {} of {} "
      "inputs.",
      plural(static_cast<uint64_t>(number("gradients")), "gradient"),
      plural(static_cast<uint64_t>(std::max<int64_t>(0, number("backward_nodes"))), "backward op"),
      plural(static_cast<uint64_t>(std::max<int64_t>(0, number("captured"))), "tensor"),
      bytesText(number("captured_bytes")),
      number("captured_unsized") > 0 ? fmt::format(", {} of unknown size", number("captured_unsized")) : "",
      number("known"), number("known") + static_cast<int64_t>(unknown.size()));
  console.paragraph(text);
  for (size_t i = 0; i < unknown.size() && i < kMostUnknown; ++i) {
    console.paragraph(fmt::format("{}, input {}: {}", unknown[i]["op"].get<std::string>(),
                                  unknown[i]["offset"].get<size_t>(), unknown[i]["why"].get<std::string>()),
                      2);
  }
  if (unknown.size() > kMostUnknown)
    console.paragraph(fmt::format("and {} more (--json has all)", unknown.size() - kMostUnknown), 2);
}

}  // namespace faultline::cli
