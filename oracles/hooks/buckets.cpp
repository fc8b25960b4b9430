#include "oracles/hooks/buckets.h"

#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "faultline/break_policy.h"
#include "oracles/hooks/promise.h"

namespace faultline {
namespace {

struct Caps {
  int64_t first = BucketOptions().first_bytes, later = BucketOptions().bytes;
};

// nullopt: other pieces are asked for, or DDPOptimizer's buckets, which follow another rule.
std::optional<Caps> capsOf(const Case& c) {
  std::istringstream words(c.plan.breaks);
  std::string word;
  Caps caps;
  if (!(words >> word) || word != "ddp") return std::nullopt;
  if (words >> caps.first >> caps.later && words >> word) return std::nullopt;
  return caps;
}

// Of a tensor as the first run gives it.
const InputSpec* tensorSpec(const Case& c, size_t input) {
  const std::vector<InputSpec>& specs = c.runs.front().inputs;
  while (input < specs.size() && specs[input].kind == InputSpec::Kind::SameAs) input = specs[input].same_as;
  const bool tensor = input < specs.size() && specs[input].kind == InputSpec::Kind::Tensor;
  return tensor ? &specs[input] : nullptr;
}

int64_t bytesOf(const InputSpec& spec) {
  auto bytes = static_cast<int64_t>(c10::elementSize(spec.dtype));
  for (const int64_t size : spec.sizes) bytes *= size;
  return bytes;
}

// The pieces that use one of `bucket`'s parameters fit the piece that is said to complete it.
std::string wrongPiece(const HookPromise& promise, const BucketTrace& bucket, size_t b) {
  bool any = false;
  for (const size_t input : bucket.inputs) {
    const std::set<int>& pieces = promise.piecesOf(input);
    if (promise.usedElsewhere(input)) return "";
    if (pieces.empty() || *pieces.rbegin() < bucket.piece) {
      return fmt::format("bucket {} is said to be complete with piece {}, and the gradient of in{} is not", b,
                         bucket.piece, input);
    }
    any = any || pieces.count(bucket.piece) != 0;
  }
  return any ? "" : fmt::format("bucket {} is complete before piece {}", b, bucket.piece);
}

}  // namespace

std::string wrongBucket(const Case& c, const Trace& lane) {
  const auto caps = capsOf(c);
  if (!caps || lane.buckets.empty() || lane.pieces.empty()) return "";
  const HookPromise promise(c, lane.pieces);
  struct Last {
    size_t bucket = 0;
    int64_t bytes = 0, cap = 0;
  };
  std::map<at::ScalarType, Last> open;  // the last bucket of each dtype
  std::set<size_t> seen;
  for (size_t b = 0; b < lane.buckets.size(); ++b) {
    const BucketTrace& bucket = lane.buckets[b];
    int64_t bytes = 0, before_last = 0;
    std::optional<at::ScalarType> dtype;
    for (const size_t input : bucket.inputs) {
      const InputSpec* spec = tensorSpec(c, input);
      if (spec == nullptr) return fmt::format("bucket {} holds in{}, which is no tensor", b, input);
      if (!seen.insert(input).second) return fmt::format("in{} stands in two buckets", input);
      if (dtype && *dtype != spec->dtype) return fmt::format("bucket {} mixes dtypes", b);
      dtype = spec->dtype;
      before_last = bytes;
      bytes += bytesOf(*spec);
    }
    if (!dtype) return fmt::format("bucket {} is empty", b);
    if (bytes != bucket.bytes) {
      return fmt::format("bucket {} is said to have {} bytes and has {}", b, bucket.bytes, bytes);
    }
    const auto last = open.find(*dtype);
    if (last != open.end() && last->second.bytes < last->second.cap) {
      return fmt::format("bucket {} is closed with {} bytes, its cap is {}", last->second.bucket,
                         last->second.bytes, last->second.cap);
    }
    const int64_t cap = last == open.end() ? caps->first : caps->later;
    if (before_last >= cap) {
      return fmt::format("bucket {} had {} bytes and took another gradient, its cap is {}", b, before_last,
                         cap);
    }
    open[*dtype] = {b, bytes, cap};
    if (std::string wrong = wrongPiece(promise, bucket, b); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace faultline
