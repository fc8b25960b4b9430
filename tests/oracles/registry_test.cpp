#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracles/lane.h"
#include "oracles/oracle.h"

namespace faultline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Lanes, WordsAreNamesOrGroupsEachOnceInTableOrder) {
  EXPECT_THAT(*resolveLanes({"stock", "engine", "engine.broken"}),
              ElementsAre("engine.broken", "engine.removed", "engine.profiled", "stock"));
  EXPECT_THAT(*resolveLanes({}), ElementsAre());
}

TEST(Lanes, AnUnknownWordNamesTheNearest) {
  const auto resolved = resolveLanes({"stok"});
  ASSERT_FALSE(resolved.has_value());
  EXPECT_THAT(resolved.error().message, HasSubstr("did you mean 'stock'"));
}

TEST(Lanes, EachCanBeMade) {
  for (const char* name :
       {"reference", "engine.broken", "engine.removed", "engine.profiled", "engine.stitched", "stock"}) {
    ASSERT_NE(findLane(name), nullptr) << name;
    EXPECT_NE(findLane(name)->make(), nullptr) << name;
  }
}

TEST(Oracles, SayWhatTheyJudge) {
  EXPECT_TRUE(findOracle("forward_equiv")->judges("stock", "stock"));
  EXPECT_FALSE(findOracle("forward_equiv")->judges("reference", "reference"));
  EXPECT_TRUE(findOracle("run_equiv")->judges("stock", "stock"));
  EXPECT_FALSE(findOracle("run_equiv")->judges("engine.broken", "engine"));
  EXPECT_TRUE(findOracle("break_equiv")->judges("engine.stitched", "engine"));
  EXPECT_TRUE(findOracle("break_equiv")->judges("engine.broken+planted", "engine"));
  EXPECT_EQ(findOracle("no_such_oracle"), nullptr);
}

TEST(Oracles, EachCanBeMade) {
  for (const OracleInfo& oracle : allOracles()) EXPECT_NE(oracle.make({}), nullptr) << oracle.name;
}

}  // namespace
}  // namespace faultline
