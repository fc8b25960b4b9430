#include "fuzz/cli/break_what_if.h"

#include <algorithm>

#include <fmt/format.h>

#include "fuzz/cli/options.h"

namespace faultline::cli {
namespace {

int64_t largestBucket(const BreakPlan& plan) {
  int64_t largest = 0;
  for (const PlannedBucket& bucket : plan.buckets) largest = std::max(largest, bucket.bytes);
  return largest;
}

}  // namespace

Result<std::vector<OtherCap>> whatIf(const std::vector<std::string>& caps, const BreakPolicy& policy,
                                     const torch::jit::Graph& graph) {
  std::vector<OtherCap> result;
  for (const std::string& text : caps) {
    if (policy.kind() != BreakPolicy::Kind::Ddp) {
      return fail(ErrorKind::Invalid, "--what-if asks for other buckets: it belongs to --policy ddp");
    }
    const auto cap = parseCount(text);
    if (!cap || *cap == 0 || *cap > INT64_MAX) {
      return fail(ErrorKind::Invalid,
                  fmt::format("--what-if: '{}' is no number of bytes of at least 1", text));
    }
    BucketOptions options = policy.bucketOptions();
    options.bytes = static_cast<int64_t>(*cap);
    auto plan = planBreaks(graph, BreakPolicy::buckets(options));
    if (!plan) return tl::make_unexpected(plan.error());
    result.push_back({options.bytes, std::move(*plan)});
  }
  return result;
}

void printWhatIf(const Console& console, const std::vector<OtherCap>& caps) {
  if (caps.empty()) return;
  console.line("\nWhat if buckets behind the first were full at another size (all sizes in bytes):");
  Table table({"full at", "buckets", "pieces", "largest", "sent first", "sent last"});
  for (size_t column = 0; column < 6; ++column) table.alignRight(column);
  for (const OtherCap& cap : caps) {
    const auto& buckets = cap.plan.buckets;
    table.add({std::to_string(cap.bucket_bytes), std::to_string(buckets.size()),
               std::to_string(cap.plan.pieces.size()), std::to_string(largestBucket(cap.plan)),
               buckets.empty() ? "-" : std::to_string(buckets.front().bytes),
               buckets.empty() ? "-" : std::to_string(buckets.back().bytes)});
  }
  console.print(table.str(2));
}

void describeWhatIf(const std::vector<OtherCap>& caps, Json& result) {
  result["what_if"] = Json::array();
  for (const OtherCap& cap : caps) {
    Json buckets = Json::array();
    for (const PlannedBucket& bucket : cap.plan.buckets) {
      buckets.push_back(
          {{"parameters", bucket.parameters}, {"bytes", bucket.bytes}, {"piece", bucket.piece}});
    }
    result["what_if"].push_back({{"bucket_bytes", cap.bucket_bytes},
                                 {"pieces", cap.plan.pieces.size()},
                                 {"buckets", std::move(buckets)}});
  }
}

}  // namespace faultline::cli
