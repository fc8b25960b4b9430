#include "fuzz/cli/break_policy.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "faultline/graph_break.h"
#include "fuzz/cli/options.h"
#include "oracles/exec/execute.h"

namespace faultline::cli {
namespace {

// "kinds:aten::relu,mm" as a case says it: "kinds aten::relu mm".
std::string asWords(std::string text) {
  if (const size_t colon = text.find(':'); colon != std::string::npos) text[colon] = ' ';
  std::replace(text.begin(), text.end(), ',', ' ');
  return text;
}

// "shards:" or "ddp:1,,2": a word that was to stand there is missing.
Result<void> checkWords(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {};
  const std::string arguments = "," + text.substr(colon + 1) + ",";
  if (arguments.find(",,") == std::string::npos) return {};
  return fail(ErrorKind::Invalid,
              fmt::format("--policy: nothing stands {} '{}'",
                          arguments == ",," ? "behind the ':' of" : "at a comma of", text));
}

Result<BreakPolicy> bucketsOf(BreakPolicy policy, const PolicyFlags& flags) {
  if (policy.kind() != BreakPolicy::Kind::Ddp) {
    return fail(ErrorKind::Invalid,
                "--first-bucket-bytes, --bucket-bytes and --compat belong to --policy ddp");
  }
  if ((flags.first_bucket_bytes || flags.bucket_bytes) && flags.policy.find(':') != std::string::npos) {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' says already how large buckets are: leave out --first-bucket-bytes and "
                            "--bucket-bytes",
                            flags.policy));
  }
  BucketOptions options = policy.bucketOptions();
  if (flags.first_bucket_bytes) options.first_bytes = static_cast<int64_t>(*flags.first_bucket_bytes);
  if (flags.bucket_bytes) options.bytes = static_cast<int64_t>(*flags.bucket_bytes);
  options.as_ddpoptimizer |= !flags.compat.empty();
  return BreakPolicy::buckets(std::move(options));
}

Result<BreakPolicy> measured(const BreakPolicy& policy, const Case& c, const PreparedCase& prepared) {
  torch::jit::Stack inputs;
  for (size_t i = 0; i < c.runs.front().inputs.size(); ++i) {
    auto value = makeInput(c.runs.front().inputs[i], inputSeed(c.seed, i), inputs);
    if (!value) return tl::make_unexpected(value.error());
    inputs.push_back(*value);
  }
  // A program may write into its constants, and what is compiled later finds them as they were.
  const auto times = measureOps(*cloneGraph(*prepared.graph), inputs);
  if (!times) return tl::make_unexpected(times.error());
  return BreakPolicy::balancedByTime(policy.count(), *times);
}

}  // namespace

void addPolicy(CLI::App& app, PolicyFlags& flags) {
  app.add_flag("--inside", flags.inside,
               "--every and --policy kinds: cut inside Ifs and Loops too, as --after and --policy markers do "
               "by themselves");
  CLI::Option* after =
      addWords(app, "--after", flags.after, "NAME,…", "cut behind this op: linear, relu_1; repeatable");
  CLI::Option* every = addCount(app, "--every", flags.every, "cut behind every N-th op")->excludes(after);
  std::string help =
      fmt::format("{}; default: what a case's plan says, else none", fmt::join(BreakPolicy::usage(), ", "));
  app.add_option("--policy", flags.policy, help)->type_name("POLICY")->excludes(after)->excludes(every);
  addCount(app, "--first-bucket-bytes", flags.first_bucket_bytes,
           "--policy ddp: when the first bucket of a dtype is full; default 1 MiB");
  addCount(app, "--bucket-bytes", flags.bucket_bytes,
           "--policy ddp: when later buckets are full; default 25 MiB");
  app.add_option("--compat", flags.compat,
                 "--policy ddp: the buckets that torch._dynamo's DDPOptimizer makes")
      ->type_name("ddpoptimizer")
      ->check(CLI::IsMember({"ddpoptimizer"}).description(""));
}

Result<BreakPolicy> policyOf(const PolicyFlags& flags, const Case& c, const PreparedCase& prepared) {
  Result<BreakPolicy> policy = BreakPolicy::none();
  if (!flags.policy.empty()) {
    if (const auto whole = checkWords(flags.policy); !whole) return tl::make_unexpected(whole.error());
    policy = BreakPolicy::read(asWords(flags.policy));
    if (!policy) return fail(ErrorKind::Invalid, "--policy: " + policy.error().message);
  } else if (flags.every) {
    policy = BreakPolicy::every(*flags.every);
  } else if (!flags.after.empty()) {
    policy = BreakPolicy::after(flags.after);
  } else {
    policy = readBreakPolicy(c, prepared);
  }
  // What is measured and what has other buckets are new policies: they are to refuse --inside as the old
  // ones.
  const bool inside = flags.inside || (policy && policy->cutsInside());
  if (policy && policy->kind() == BreakPolicy::Kind::Balanced &&
      policy->weight() == BreakPolicy::Weight::Time) {
    policy = measured(*policy, c, prepared);
  }
  const bool buckets = flags.first_bucket_bytes || flags.bucket_bytes || !flags.compat.empty();
  if (policy && buckets) policy = bucketsOf(std::move(*policy), flags);
  return policy && inside ? policy->insideBlocks() : policy;
}

}  // namespace faultline::cli
