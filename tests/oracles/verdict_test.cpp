#include "oracles/verdict.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(Verdict, SignatureHasADetailOnlyWhereThereIsOne) {
  EXPECT_EQ(Verdict::failure(FailureKind::value, "", "", 1).signature("forward_equiv", "engine"),
            "forward_equiv/engine/value");
  EXPECT_EQ(Verdict::failure(FailureKind::throws, "view_of_leaf", "", 1).signature("run_equiv", "stock"),
            "run_equiv/stock/throws/view_of_leaf");
}

TEST(VerdictDeathTest, APassNeedsAComparison) {
  EXPECT_DEATH((void)Verdict::pass(0), "a pass without a comparison");
}

TEST(Verdict, WhatDoesNotApply) {
  EXPECT_FALSE(Verdict::skip("not_applicable").applicable());
  EXPECT_FALSE(Verdict::skip("plan_refused").applicable());
  EXPECT_TRUE(Verdict::skip("reference_throws").applicable());
  EXPECT_TRUE(Verdict::pass(1).applicable());
}

TEST(Verdict, EveryKindHasItsName) {
  EXPECT_STREQ(toString(FailureKind::value), "value");
  EXPECT_STREQ(toString(FailureKind::nondeterministic), "nondeterministic");
}

}  // namespace
}  // namespace faultline
