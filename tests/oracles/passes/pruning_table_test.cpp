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
    // Where libtorch's plan has a loop's body several times, or more parts, these are pruned one by one, and
    // seams between them get gradients.
    if (row.ours.parts < row.stock.parts) {
      EXPECT_LT(row.ours.gradients, row.stock.gradients);
    } else {
      EXPECT_GE(row.ours.pruned, row.stock.pruned);
    }
    // What libtorch leaves to eager autograd calls no more than eager autograd.
    if (row.stock.parts > 0) EXPECT_LE(row.ours.calls, row.stock.calls);
  }
  for (const char* more : {"nested", "nested, cold", "If", "If, cold"}) {
    ASSERT_EQ(by_name.count(more), 1u) << more;
    EXPECT_GT(by_name[more].ours.pruned, by_name[more].stock.pruned) << more;
    EXPECT_GT(by_name[more].ours.backward_nodes, by_name[more].stock.backward_nodes) << more;
  }
  // Gradients of all tensors of a list, whichever need one.
  EXPECT_LT(by_name["list"].ours.gradients, by_name["list"].stock.gradients);
  for (const char* fewer : {"straight", "nested", "If", "Loop", "multi-use"})
    EXPECT_LT(by_name[fewer].ours.calls, by_name[fewer].stock.calls) << fewer;
}

}  // namespace
}  // namespace faultline
