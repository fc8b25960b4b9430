// The table of passes on passes that are known to be wrong in one way.
#include <gtest/gtest.h>

#include "faultline/ir.h"
#include "faultline/profile.h"
#include "oracles/passes/pass_table.h"

namespace faultline {
namespace {

namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;
using torch::jit::Block;

template <class Do>
void onNodes(Block* block, Do act) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it;
    ++it;
    for (Block* inner : node->blocks()) onNodes(inner, act);
    if (node->hasAttribute(attr::Subgraph)) onNodes(node->g(attr::Subgraph)->block(), act);
    if (node->kind() == prim::profile && node->outputs().size() == 1) act(node);
  }
}

bool isCloneNode(const Node* node) { return node->hasAttribute(c10::Symbol::attr("faultline_clone")); }

void take(Node* node) {
  node->output()->replaceAllUsesWith(node->input());
  node->destroy();
}

void claim(Node* node, const c10::TensorTypePtr& type) {
  const auto fields = c10::Symbol::attr("faultline_fields");
  if (node->hasAttribute(fields)) node->removeAttribute(fields);
  node->ty_(attr::profiled_type, type);
}

const std::vector<ProfiledSample>& samples() {
  static const std::vector<ProfiledSample> all = generatedSamples(7, 12);
  return all;
}

PassRow rowOf(std::function<void(std::shared_ptr<Graph>&)> run) {
  return passTable({{"planted", "", std::move(run)}}, samples()).at(0);
}

TEST(PassTable, SamplesArePropagatedAndRepeatable) {
  ASSERT_GE(samples().size(), 6u);
  const auto again = generatedSamples(7, 12);
  ASSERT_EQ(again.size(), samples().size());
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(writeGraph(*again[i].graph), writeGraph(*samples()[i].graph));
    EXPECT_TRUE(validateProfileNode(samples()[i].graph));
  }
}

TEST(PassTable, NothingDoneIsIdle) {
  EXPECT_EQ(rowOf([](auto&) {}).verdict, PassVerdict::Idle);
}

TEST(PassTable, ThrownErrorsAreCounted) {
  const PassRow row = rowOf([](auto&) { throw std::runtime_error("planted failure"); });
  EXPECT_EQ(row.verdict, PassVerdict::Throws);
  EXPECT_EQ(row.threw, samples().size());
  EXPECT_NE(row.example.find("planted_failure"), std::string::npos) << row.example;
}

TEST(PassTable, ACrashIsARow) {
  const PassRow row = rowOf([](auto&) { std::abort(); });
  EXPECT_EQ(row.verdict, PassVerdict::Crashes);
  EXPECT_EQ(row.example, "signal 6");
}

TEST(PassTable, LostClonesComeBackWithPropagation) {
  const PassRow row = rowOf([](auto& graph) {
    onNodes(graph->block(), [](Node* node) {
      if (isCloneNode(node)) take(node);
    });
  });
  EXPECT_EQ(row.verdict, PassVerdict::Propagate);
  EXPECT_GT(row.clones_lost, 0u);
  EXPECT_GT(row.findings.at("not_at_feed"), 0u);
  EXPECT_TRUE(row.wrong.empty());
  EXPECT_GT(row.ran, 0u);
}

TEST(PassTable, LostEvidenceLosesAnswers) {
  const PassRow row = rowOf([](auto& graph) { onNodes(graph->block(), take); });
  EXPECT_EQ(row.verdict, PassVerdict::LosesAnswers);
  EXPECT_GT(row.evidence_lost, 0u);
  EXPECT_EQ(row.answered_after, 0u);
}

TEST(PassTable, AForeignTypeIsAWrongAnswer) {
  // As if each node had come to stand on another value: a rank that no generated tensor has.
  const PassRow row = rowOf([](auto& graph) {
    onNodes(graph->block(), [](Node* node) {
      claim(node, c10::TensorType::create(at::zeros({1, 1, 1, 1, 1, 1, 1})));
    });
  });
  EXPECT_EQ(row.verdict, PassVerdict::WrongAnswers);
  EXPECT_GT(row.wrong.at("rank"), 0u);
  EXPECT_NE(row.example, "");
}

TEST(PassTable, ASecondTruthContradicts) {
  const PassRow row = rowOf([](auto& graph) {
    onNodes(graph->block(), [](Node* node) {
      if (isCloneNode(node)) return;
      Node* other = node->owningGraph()->create(prim::profile, {node->input()}, 1);
      claim(other, c10::TensorType::create(at::zeros({1, 1, 1, 1, 1, 1, 1}, at::kLong)));
      other->insertBefore(node);
    });
  });
  EXPECT_TRUE(row.verdict == PassVerdict::Contradicts || row.verdict == PassVerdict::WrongAnswers);
  EXPECT_GT(row.staying.count("contradiction"), 0u);
}

TEST(PassTable, StockPassesRunOnAllSamples) {
  const std::vector<PassRow> rows = passTable(stockPasses(), {samples().begin(), samples().begin() + 5});
  ASSERT_EQ(rows.size(), stockPasses().size());
  size_t effective = 0;
  for (const PassRow& row : rows) {
    if (row.verdict == PassVerdict::Crashes) continue;
    EXPECT_EQ(row.graphs + row.threw, 5u) << row.name;
    effective += row.changed > 0 ? 1 : 0;
    if (row.name == "ConstantPooling") EXPECT_TRUE(row.wrong.empty()) << row.example;
  }
  EXPECT_GE(effective, 15u);
}

}  // namespace
}  // namespace faultline
