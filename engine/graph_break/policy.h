// What a policy makes of a graph: the cuts it wishes for. One file policy_*.cpp per row of
// break_policies.def.
#pragma once
#include <string>
#include <vector>

#include "engine/graph_break/parts.h"
#include "faultline/graph_break.h"

namespace faultline {

struct Wish {
  size_t end;          // index behind the node, in WorkingCopy::nodes
  std::string after;   // its name
  std::string reason;  // the policy's words
};

struct WishedBucket {
  std::vector<std::string> parameters;
  int64_t bytes = 0;
  size_t completed_by = 0;  // the top-level node whose backward makes its last gradient whole
};

struct Wishes {
  std::vector<Wish> cuts;  // in any order; of several at one place the first counts
  std::vector<RefusedCut> refused;
  std::vector<WishedBucket> buckets;
};

#define FAULTLINE_POLICY(Name, word, arguments, help)                              \
  Result<Wishes> wishes##Name(const GraphFacts& facts, const BreakPolicy& policy); \
  Result<BreakPolicy> read##Name(const std::vector<std::string>& arguments_given);
#include "faultline/break_policies.def"
#undef FAULTLINE_POLICY

// The place right behind top-level node `i`, which is an op.
Wish wishAfter(const GraphFacts& facts, size_t i, std::string reason);
// The place right before it: behind the op before. Nothing, and false, where it is the first op.
bool wishBefore(const GraphFacts& facts, size_t i, std::string reason, Wishes& wishes);
// Whether the op before `end` is the last of a block that is cut, where a piece ends anyhow; the graph's own
// block is not meant.
bool endsBlock(const GraphFacts& facts, size_t end);
// The nearest legal place for a cut behind `node`, which stands in a block or is a constant: said in
// `wishes.refused`.
void wishNear(const GraphFacts& facts, const Node* node, Wishes& wishes);

// Whether the op is one of these: "relu" or "aten::relu".
bool isOfKind(const Node* node, const std::vector<std::string>& kinds);
// Nodes of blocks that stand right around a mark in the source.
std::vector<const Node*> markedInside(const WorkingCopy& work);

// A decimal number of at least 1.
Result<size_t> readCount(const std::string& word, std::string_view what);
Result<BreakPolicy> refuseArguments(std::string_view word);

}  // namespace faultline
