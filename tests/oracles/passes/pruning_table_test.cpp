// Against libtorch's executor: nothing that it leaves out is computed by us.
#include <gtest/gtest.h>

#include <map>

#include "oracles/exec/global_state.h"
#include "oracles/passes/pruning_table.h"

namespace faultline {
namespace {

TEST(PruningTable, AtLeastAsMuchAsLibtorch) {
  const GlobalStateCheck state;
  const auto rows = pruningTable();
  state.restore();
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  std::map<std::string, PruningRow> by_name;
  for (const PruningRow& row : *rows) {
    SCOPED_TRACE(row.name);
    by_name[row.name] = row;
    EXPECT_GT(row.ours.parts, 0u);
    EXPECT_GT(row.ours.pruned, 0u);
    EXPECT_GT(row.ours.backward_nodes, 0);
    EXPECT_GT(row.eager_calls, 0u);
    // Executed, ops counted as the program has them: nothing needless is computed, and of what libtorch
    // leaves out ahead of time nothing is left to eager autograd. In the code that was made it can be counted
    // only where both sides have as many parts: libtorch has bodies of loops twice.
    EXPECT_GT(row.needless, 0u);
    EXPECT_EQ(row.ours.computed, 0u);
    EXPECT_GE(row.ours.left_out_ahead, row.stock.left_out_ahead);
    EXPECT_EQ(row.ours.left_out_ahead + row.ours.left_out_then + row.ours.computed, row.needless);
    EXPECT_EQ(row.stock.left_out_ahead + row.stock.left_out_then + row.stock.computed, row.needless);
    if (row.ours.parts >= row.stock.parts) EXPECT_GE(row.ours.pruned, row.stock.pruned);
  }
  for (const char* more : {"nested", "nested, cold", "If", "If, cold"}) {
    ASSERT_EQ(by_name.count(more), 1u) << more;
    EXPECT_GT(by_name[more].ours.pruned, by_name[more].stock.pruned) << more;
    EXPECT_GT(by_name[more].ours.backward_nodes, by_name[more].stock.backward_nodes) << more;
  }
  // In arms that the profiled run did not take libtorch leaves to eager autograd what it does not get wrong.
  for (const char* cold : {"nested, cold", "If, cold", "Loop, cold", "multi-use, cold"})
    EXPECT_GT(by_name[cold].ours.left_out_ahead, by_name[cold].stock.left_out_ahead) << cold;
  EXPECT_GT(by_name["list"].stock.computed, 0u);
  EXPECT_GT(by_name["nested, cold"].stock.computed, 0u);
  // Gradients of all tensors of a list, whichever need one.
  EXPECT_LT(by_name["list"].ours.gradients, by_name["list"].stock.gradients);
  EXPECT_LE(by_name["list"].ours.calls, by_name["list"].stock.calls);
  for (const char* fewer : {"straight", "nested", "If", "Loop", "multi-use"})
    EXPECT_LT(by_name[fewer].ours.calls, by_name[fewer].stock.calls) << fewer;
}

}  // namespace
}  // namespace faultline
