#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generators/ops/op_row.h"
#include "tests/generators/generate/cases.h"

namespace faultline {
namespace {

using testing::HasSubstr;

std::set<std::string> opsSeen(const GenerateOptions& options, uint64_t cases) {
  std::set<std::string> seen;
  for (uint64_t index = 0; index < cases; ++index) {
    for (const std::string& trait : caseTraits(caseOf(51, index, options))) {
      if (trait.rfind("op:aten::", 0) == 0) seen.insert(trait.substr(3));
    }
  }
  return seen;
}

size_t casesWith(const GenerateOptions& options, const std::string& trait, uint64_t cases) {
  size_t count = 0;
  for (uint64_t index = 0; index < cases; ++index)
    count += caseTraits(caseOf(52, index, options)).count(trait);
  return count;
}

TEST(Options, ARemovedOpNeverComes) {
  GenerateOptions options;
  options.ops_removed = {"mul", "tanh"};
  std::set<std::string> seen = opsSeen(options, 80);
  EXPECT_EQ(seen.count("aten::mul.Tensor"), 0u);
  EXPECT_EQ(seen.count("aten::tanh"), 0u);
  EXPECT_EQ(seen.count("aten::add.Tensor"), 1u);
}

TEST(Options, AnAddedOpTakesPartEvenWithoutItsFeature) {
  GenerateOptions options;
  options.features = {"-inplace"};
  EXPECT_EQ(casesWith(options, "mutation", 80), 0u);
  options.ops_added = {"add_"};
  EXPECT_GT(casesWith(options, "op:aten::add_.Tensor", 80), 10u);
  EXPECT_EQ(casesWith(options, "op:aten::mul_.Tensor", 80), 0u);
}

TEST(Options, PinsHold) {
  GenerateOptions options;
  options.features = {"-branches", "-loops"};
  EXPECT_EQ(casesWith(options, "control_flow", 80), 0u);
  options.features = {"+branches", "-profile", "-hooks", "-breaks", "-flips"};
  EXPECT_GT(casesWith(options, "if", 80), 40u);
  for (const char* trait : {"profile", "hooks", "breaks", "flips"})
    EXPECT_EQ(casesWith(options, trait, 40), 0u);
}

TEST(Options, EveryOpRemovedLeavesCasesWithoutOps) {
  GenerateOptions options;
  for (const OpRow& row : opRows()) options.ops_removed.push_back(row.name);
  options.features = {"-loss", "-branches"};
  for (const std::string& op : opsSeen(options, 20)) {
    for (const OpRow& row : opRows()) EXPECT_NE(op, row.schema);
  }
}

TEST(Options, NodeCountsHold) {
  GenerateOptions options;
  options.min_nodes = 20;
  options.max_nodes = 24;
  options.features = {"-loss", "-plumbing"};
  for (uint64_t index = 0; index < 150; ++index) {
    size_t count = countNodes(caseOf(53, index, options));
    EXPECT_GE(count, 20u) << index;
    EXPECT_LE(count, 40u) << index;  // a block or a chain that was begun is finished
  }
  // A few ops that seldom find operands, and features switched off, leave the bound as it is.
  options.features = {"-branches", "-loops",   "-chains", "-lists",
                      "-tuples",   "-no_grad", "-loss",   "-plumbing"};
  for (uint64_t index = 0; index < 50; ++index)
    EXPECT_GE(countNodes(caseOf(54, index, options)), 20u) << index;
}

TEST(Options, UnknownNamesAreRefusedWithTheNearest) {
  GenerateOptions options;
  options.ops_added = {"sigmoyd"};
  Result<void> valid = validateGenerateOptions(options);
  ASSERT_FALSE(valid.has_value());
  EXPECT_THAT(valid.error().message, HasSubstr("'sigmoid'"));

  options = {};
  options.features = {"+vews"};
  valid = validateGenerateOptions(options);
  ASSERT_FALSE(valid.has_value());
  EXPECT_THAT(valid.error().message, HasSubstr("'views'"));

  options = {};
  options.ops_added = {"mul"};
  options.ops_removed = {"mul"};
  EXPECT_FALSE(validateGenerateOptions(options).has_value());
  options = {};
  options.min_nodes = 9;
  options.max_nodes = 8;
  EXPECT_FALSE(validateGenerateOptions(options).has_value());
  EXPECT_TRUE(validateGenerateOptions({}).has_value());
}

TEST(Options, TheRecorderSeesEachOpBeforeItRuns) {
  GenerateOptions options;
  size_t seen = 0, matched = 0;
  options.before_op = [&](const PendingOp& pending) {
    const OpRow* row = findOpRow(pending.op);
    ASSERT_NE(row, nullptr);
    EXPECT_FALSE(pending.tape.choices.empty());
    if (++seen % 10 != 0) return;
    Case c = pending.case_with_op();
    // Blocks and returns are whole, and the op stands in it.
    EXPECT_TRUE(caseTraits(c).count("op:" + row->schema) == 1) << row->schema;
    ++matched;
  };
  for (uint64_t index = 0; index < 40; ++index) caseOf(54, index, options);
  EXPECT_GT(matched, 50u);
}

TEST(Options, WhatTheRecorderThrowsLeavesTheGenerator) {
  GenerateOptions options;
  options.before_op = [](const PendingOp&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(caseOf(55, 0, options), std::runtime_error);
}

}  // namespace
}  // namespace faultline
