// c10d's buckets, in the order gradients become ready, or DDPOptimizer's. A piece begins where the last
// gradient of a bucket becomes whole: then its backward completes the bucket, and nothing else has to wait.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "engine/graph_break/parameter_uses.h"
#include "engine/graph_break/policy.h"

namespace faultline {

BreakPolicy BreakPolicy::buckets(BucketOptions options) {
  BreakPolicy policy;
  policy.kind_ = Kind::Ddp;
  policy.buckets_ = std::move(options);
  return policy;
}

Result<BreakPolicy> readDdp(const std::vector<std::string>& words) {
  BucketOptions options;
  if (words.size() == 1 || words.size() > 3 || (words.size() == 3 && words[2] != "ddpoptimizer")) {
    return refuseArguments("ddp");
  }
  if (!words.empty()) {
    const auto first = readCount(words[0], "bytes of the first bucket");
    const auto cap = readCount(words[1], "bytes of a bucket");
    if (!first || !cap) {
      return tl::make_unexpected(first ? cap.error() : first.error());
    }
    options.first_bytes = static_cast<int64_t>(*first);
    options.bytes = static_cast<int64_t>(*cap);
    options.as_ddpoptimizer = words.size() == 3;
  }
  return BreakPolicy::buckets(std::move(options));
}

namespace {

std::vector<WishedBucket> reducerBuckets(const std::vector<ParameterUse>& ready,
                                         const BucketOptions& options) {
  struct Open {
    WishedBucket bucket;
    bool first = true;  // none of its key is closed yet
  };
  using Key = std::tuple<int, int, int>;
  std::map<Key, Open> open;
  std::vector<WishedBucket> closed;
  for (const ParameterUse& parameter : ready) {
    const Key key{static_cast<int>(*parameter.dtype),
                  parameter.device ? static_cast<int>(parameter.device->type()) : 0,
                  parameter.device ? parameter.device->index() : -1};
    Open& mine = open[key];
    mine.bucket.parameters.push_back(parameter.name);
    mine.bucket.bytes += *parameter.bytes;
    mine.bucket.completed_by = parameter.first;
    if (mine.bucket.bytes >= (mine.first ? options.first_bytes : options.bytes)) {
      closed.push_back(std::exchange(mine.bucket, {}));
      mine.first = false;
    }
  }
  // What is left over goes out as it is completed.
  const auto rest = static_cast<std::ptrdiff_t>(closed.size());
  for (auto& [key, one] : open) {
    if (!one.bucket.parameters.empty()) {
      closed.push_back(std::move(one.bucket));
    }
  }
  std::stable_sort(closed.begin() + rest, closed.end(), [](const WishedBucket& a, const WishedBucket& b) {
    return a.completed_by > b.completed_by;
  });
  return closed;
}

// A bucket is a row of ops, and begins behind the one before it in the graph.
std::vector<WishedBucket> optimizerBuckets(const GraphFacts& facts,
                                           const std::vector<ParameterUse>& parameters,
                                           const BucketOptions& options) {
  const WorkingCopy& work = facts.work;
  std::map<size_t, const ParameterUse*> by_input;
  for (const ParameterUse& parameter : parameters) {
    by_input[parameter.input] = &parameter;
  }
  std::vector<WishedBucket> buckets(1);
  bool seen_outside = false;  // a value of the bucket's is used behind it
  size_t end = work.nodes.size();
  for (size_t i = work.nodes.size(); i-- > 0;) {
    const Node* node = work.nodes[i];
    if (facts.nodes[i].constant) {
      continue;
    }
    const bool full = buckets.back().bytes >= options.bytes ||
                      (buckets.size() == 1 && buckets.back().bytes >= options.first_bytes);
    // Full, it still grows until something in it is used outside.
    if (full && seen_outside) {
      buckets.emplace_back();
      seen_outside = false;
      end = i + 1;
    }
    WishedBucket& bucket = buckets.back();
    bucket.completed_by = i;
    // It looks at the operands themselves, not into lists of them.
    for (const Value* input : node->inputs()) {
      auto it = work.isGraphInput(input) && node->kind() != torch::jit::prim::ListConstruct
                    ? by_input.find(input->offset())
                    : by_input.end();
      if (it != by_input.end()) {
        bucket.parameters.push_back(it->second->name);
        bucket.bytes += *it->second->bytes;
      }
    }
    for (const Value* output : node->outputs()) {
      for (const auto& use : output->uses()) {
        seen_outside =
            seen_outside || use.user == work.graph->return_node() || work.topLevel(use.user) >= end;
      }
    }
  }
  if (buckets.size() > 1 && buckets.back().bytes == 0) {
    const size_t begin = buckets.back().completed_by;
    buckets.pop_back();
    buckets.back().completed_by = begin;
  }
  return buckets;
}

}  // namespace

Result<Wishes> wishesDdp(const GraphFacts& facts, const BreakPolicy& policy) {
  const BucketOptions& options = policy.bucketOptions();
  if (options.first_bytes <= 0 || options.bytes <= 0) {
    return fail(ErrorKind::Invalid, "a bucket of no bytes cannot be filled");
  }
  std::vector<ParameterUse> parameters = parameterUses(facts);
  for (const std::string& name : options.ignored) {
    if (!findParameter(parameters, name)) {
      return unknownParameter(parameters, name);
    }
  }
  for (const ParameterUse& parameter : parameters) {
    const bool used = options.as_ddpoptimizer || parameter.first != SIZE_MAX;
    if (used && (!parameter.bytes || !parameter.dtype)) {
      return fail(ErrorKind::Invalid,
                  fmt::format("the size of {} is not known: its type is not complete", parameter.name));
    }
  }
  Wishes wishes;
  if (options.as_ddpoptimizer) {
    wishes.buckets = optimizerBuckets(facts, parameters, options);
  } else {
    auto is_ignored = [&](const ParameterUse& parameter) {
      return std::count(options.ignored.begin(), options.ignored.end(), parameter.name) > 0;
    };
    parameters.erase(std::remove_if(parameters.begin(), parameters.end(), is_ignored), parameters.end());
    wishes.buckets = reducerBuckets(inReadyOrder(std::move(parameters)), options);
  }
  // What comes before the last bucket to be completed adds no gradient of a parameter.
  size_t last = SIZE_MAX;
  for (const WishedBucket& bucket : wishes.buckets) {
    last = std::min(last, bucket.completed_by);
  }
  for (size_t b = 0; b < wishes.buckets.size(); ++b) {
    const WishedBucket& bucket = wishes.buckets[b];
    if (bucket.completed_by != last) {
      wishBefore(facts, bucket.completed_by, fmt::format("bucket {}: {} bytes", b, bucket.bytes), wishes);
    }
  }
  return wishes;
}

}  // namespace faultline
