#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/jit/runtime/autodiff.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "generators/ops/op_row.h"
#include "generators/ops/rules.h"

namespace faultline {
namespace {

std::shared_ptr<torch::jit::Operator> operatorOf(const OpRow& row) {
  size_t dot = row.schema.find('.');
  std::string overload = dot == std::string::npos ? "" : row.schema.substr(dot + 1);
  return torch::jit::findOperatorFor(c10::OperatorName(row.schema.substr(0, dot), overload));
}

bool has(const OpRow& row, const std::string& hazard) {
  return std::find(row.hazards.begin(), row.hazards.end(), hazard) != row.hazards.end();
}

bool resultAliases(const c10::FunctionSchema& schema, bool written) {
  for (const c10::Argument& result : schema.returns()) {
    if (result.alias_info() != nullptr && result.alias_info()->isWrite() == written) return true;
  }
  return false;
}

TEST(OpRows, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const OpRow& row : opRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(findOpRow(row.name), &row);
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_GT(row.weight, 0u) << row.name;
  }
  EXPECT_EQ(findOpRow("no_such_op"), nullptr);
  EXPECT_EQ(findOpRowOfSchema("aten::no_such_op"), nullptr);
  EXPECT_EQ(findOpRowOfSchema("aten::mul.Tensor"), findOpRow("mul"));
}

TEST(OpRows, FlagsAgreeWithLibtorchsSchemas) {
  for (const OpRow& row : opRows()) {
    auto op = operatorOf(row);
    ASSERT_NE(op, nullptr) << row.schema;
    const c10::FunctionSchema& schema = op->schema();
    EXPECT_EQ(row.mutates, schema.is_mutable()) << row.name;
    EXPECT_EQ(row.mutates, row.family == "inplace") << row.name;
    bool aliases = resultAliases(schema, /*written=*/false);
    if (row.view) EXPECT_TRUE(aliases) << row.name;
    if (aliases && !row.view) EXPECT_TRUE(has(row, "same_object")) << row.name;
    const auto& tags = op->getTags();
    bool random = std::find(tags.begin(), tags.end(), at::Tag::nondeterministic_seeded) != tags.end();
    EXPECT_EQ(row.random, random) << row.name;
    EXPECT_EQ(has(row, "rng"), random) << row.name;
  }
}

TEST(OpRows, AutodiffFlagAgreesWithLibtorch) {
  for (const OpRow& row : opRows()) {
    auto op = operatorOf(row);
    torch::jit::Graph graph;
    std::vector<torch::jit::Value*> inputs;
    for (const c10::Argument& argument : op->schema().arguments()) {
      // `expand` and `dropout` are differentiable where sizes and mode are known when they are compiled.
      bool sizes = argument.type()->isSubtypeOf(*c10::ListType::ofInts());
      bool flag = argument.type()->kind() == c10::TypeKind::BoolType;
      inputs.push_back(sizes  ? graph.insertConstant(std::vector<int64_t>{1})
                       : flag ? graph.insertConstant(true)
                              : graph.addInput()->setType(argument.type()));
    }
    size_t dot = row.schema.find('.');
    auto* node = graph.create(c10::Symbol::fromQualString(row.schema.substr(0, dot)), inputs,
                              op->schema().returns().size());
    graph.appendNode(node);
    ASSERT_EQ(node->maybeOperator(), op.get()) << row.name;
    EXPECT_EQ(row.autodiff, torch::jit::isDifferentiable(node)) << row.name;
  }
}

TEST(OpRows, EveryOperandWordIsKnownAndUsed) {
  std::set<std::string> known, used;
  for (const OperandWord& word : operandWords()) {
    EXPECT_TRUE(known.insert(word.name).second) << word.name << " stands in both tables";
    EXPECT_FALSE(word.help.empty());
  }
  for (const OpRow& row : opRows()) {
    auto op = operatorOf(row);
    std::vector<std::string> words = splitWords(row.operands, ' ');
    const auto& arguments = op->schema().arguments();
    EXPECT_LE(words.size(), arguments.size()) << row.name;
    for (size_t i = words.size(); i < arguments.size(); ++i) {
      EXPECT_TRUE(arguments[i].default_value().has_value()) << row.name << ": " << arguments[i].name();
    }
    for (const std::string& word : words) {
      for (const std::string& predicate : splitWords(word, '+')) used.insert(predicate);
    }
  }
  // The vector of a linear layer's bias is asked for by the word `bias`.
  used.insert("weight_vector");
  EXPECT_EQ(known, used);
}

TEST(OpRows, EveryHazardAndResultRuleIsKnownAndUsed) {
  std::set<std::string> known_hazards, used_hazards, known_rules, used_rules;
  for (const OpHazard& hazard : opHazards()) known_hazards.insert(hazard.name);
  for (const RangeRule& rule : rangeRules()) known_rules.insert(rule.name);
  for (const OpRow& row : opRows()) {
    used_hazards.insert(row.hazards.begin(), row.hazards.end());
    used_rules.insert(row.result);
  }
  EXPECT_EQ(known_hazards, used_hazards);
  EXPECT_EQ(known_rules, used_rules);
}

TEST(OpRows, ClassesAreWellFilled) {
  std::map<std::string, size_t> families;
  for (const OpRow& row : opRows()) ++families[row.family];
  EXPECT_GE(opRows().size(), 60u);
  EXPECT_GE(families["view"], 8u);
  EXPECT_GE(families["inplace"], 8u);
  EXPECT_GE(families["reduction"], 4u);
  EXPECT_GE(families["binary"], 6u);
  EXPECT_GE(families["matrix"], 5u);
}

// A bug where a view and a write meet must be found, not planted: rows are one or the other, and what an
// operand rule asks for is a property of the tensor, never the op that made it.
TEST(OpRows, NoRowSpeaksOfViewsAndWritesAtOnce) {
  std::set<std::string> words;
  for (const OperandWord& word : operandWords()) words.insert(word.name);
  for (const OpRow& row : opRows()) {
    EXPECT_FALSE(row.view && row.mutates) << row.name;
    if (row.view || row.mutates) EXPECT_EQ(words.count(row.name), 0u) << row.name;
  }
}

}  // namespace
}  // namespace faultline
