// Where a caller wants a graph to be cut. One row of faultline/break_policies.def per policy.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "faultline/error.h"

namespace faultline {

// c10d's buckets: of gradients in the order they become ready, one open bucket per dtype and device; a bucket
// is full when its size reaches the cap, the first one when it reaches the first cap.
struct BucketOptions {
  int64_t first_bytes = int64_t{1} << 20;
  int64_t bytes = int64_t{25} << 20;
  // As torch._dynamo's DDPOptimizer does it: op by op from the end, whatever the dtype, a parameter once per
  // op that uses it.
  bool as_ddpoptimizer = false;
  std::vector<std::string> ignored;  // parameters that no bucket holds; DDPOptimizer takes them all the same
};

class BreakPolicy {
 public:
  enum class Kind {
#define FAULTLINE_POLICY(Name, word, arguments, help) Name,
#include "faultline/break_policies.def"
#undef FAULTLINE_POLICY
  };
  enum class Weight { Ops, Bytes, Time, Given };
  using Accepts = std::function<bool(const torch::jit::Node&)>;
  using Units = std::vector<std::vector<std::string>>;

  static BreakPolicy none();                                  // one piece
  static BreakPolicy after(std::vector<std::string> names);   // behind each named op
  static BreakPolicy every(size_t ops);                       // behind every N-th op that is not a constant
  static BreakPolicy balanced(size_t pieces, Weight weight);  // Ops, or Bytes of parameters
  // By what each op weighs, by name. An op without an entry weighs nothing.
  static BreakPolicy balanced(size_t pieces, std::map<std::string, double> weights);
  // The same by the times of measureOps, which the reasons of the cuts then say.
  static BreakPolicy balancedByTime(size_t pieces, std::map<std::string, double> microseconds);
  static BreakPolicy markers();  // behind the source lines that carry the comment "# break"
  // Before the first use of each, so that its gradient is ready as early as it can be; none named: of all.
  static BreakPolicy parameters(std::vector<std::string> names = {});
  static BreakPolicy kinds(
      std::vector<std::string> ops);              // behind every op of these kinds: "relu", "aten::mm"
  static BreakPolicy predicate(Accepts accepts);  // behind every top-level op it accepts; called once per op
  static BreakPolicy buckets(BucketOptions options = {});
  // One piece per unit of parameters that are gathered together; none given: parameters named alike up to the
  // last "_" or ".".
  static BreakPolicy shards(Units units = {});

  // The same, with cuts inside Ifs and Loops too. These are opened then: what a condition chooses and what a
  // loop repeats runs piece by piece. `every` opens blocks of more than N ops; `kinds` and predicates (which
  // are asked twice per op then) those that hold an op they mean; `after` and `markers` cut inside anyhow,
  // for they say where. Other policies cannot.
  BreakPolicy insideBlocks() const;
  bool cutsInside() const { return inside_; }

  // As words: "after relu_1 mm", "inside every 3", "balanced 4 bytes", "ddp 1048576 26214400 ddpoptimizer",
  // "shards w0+b0 w1+b1". What a case's `breaks:` says, and the command line with ':' and ',' for blanks.
  // Refuses an unknown word and arguments that cannot be meant.
  static Result<BreakPolicy> read(std::string_view words);
  // The word and its arguments, for help: "balanced:K[,ops|bytes]".
  static std::vector<std::string> usage();

  Kind kind() const { return kind_; }
  const std::vector<std::string>& names() const { return names_; }  // After, Parameters, Kinds
  size_t count() const { return count_; }                           // Every: ops; Balanced: pieces
  Weight weight() const { return weight_; }
  const std::map<std::string, double>& weights() const { return weights_; }
  const Accepts& accepts() const { return accepts_; }
  const BucketOptions& bucketOptions() const { return buckets_; }
  const Units& units() const { return units_; }

 private:
  static Result<BreakPolicy> readWords(const std::vector<std::string>& words);

  Kind kind_ = Kind::None;
  bool inside_ = false;
  std::vector<std::string> names_;
  size_t count_ = 0;
  Weight weight_ = Weight::Ops;
  std::map<std::string, double> weights_;
  Accepts accepts_;
  BucketOptions buckets_;
  Units units_;
};

}  // namespace faultline
