#include "oracles/compare/values.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "oracles/compare/rules.h"

namespace faultline {
namespace {

constexpr Tolerance kTight{1e-6, 1e-6};

ValueComparison compared(std::vector<double> a, std::vector<double> b, at::ScalarType dtype = at::kFloat) {
  return compareValues(at::tensor(a, at::kDouble).to(dtype), at::tensor(b, at::kDouble).to(dtype), kTight);
}

TEST(Values, NotANumberAndInfinity) {
  EXPECT_TRUE(compared({NAN, INFINITY, -INFINITY, 1}, {NAN, INFINITY, -INFINITY, 1}).equal);
  EXPECT_EQ(compared({NAN, INFINITY, 1}, {NAN, INFINITY, 1}).counted, 1u) << "only numbers count";
  EXPECT_TRUE(compared({INFINITY}, {-INFINITY}).other_class);
  EXPECT_TRUE(compared({1}, {NAN}).other_class);
  EXPECT_TRUE(compared({NAN}, {1}).other_class);
  EXPECT_FALSE(compared({1}, {2}).other_class);
}

TEST(Values, NoToleranceExcusesAnotherClass) {
  const ValueComparison c = compareValues(at::tensor({1e30f}), at::tensor({INFINITY}), {1e9, 1e9});
  EXPECT_FALSE(c.equal);
}

TEST(Values, ZerosAreEqual) { EXPECT_TRUE(compared({0.0}, {-0.0}).equal); }

TEST(Values, TheGravestDifferenceSpeaks) {
  const ValueComparison c = compared({1, 2}, {5, NAN});
  EXPECT_TRUE(c.other_class);
  EXPECT_EQ(c.message, "[1]: expected 2, got nan");
}

TEST(Values, ToleranceIsAbsolutePlusRelative) {
  EXPECT_TRUE(compared({1000}, {1000.0009}, at::kDouble).equal);
  EXPECT_FALSE(compared({1000}, {1000.0021}, at::kDouble).equal);
  EXPECT_TRUE(compared({0}, {9e-7}, at::kDouble).equal);
  EXPECT_FALSE(compared({0}, {2e-6}, at::kDouble).equal);
}

TEST(Values, EveryDtype) {
  for (at::ScalarType dtype : {at::kHalf, at::kBFloat16, at::kDouble, at::kLong, at::kInt, at::kByte,
                               at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    EXPECT_TRUE(compared({1, 0}, {1, 0}, dtype).equal) << dtype;
    EXPECT_FALSE(compared({1, 0}, {1, 1}, dtype).equal) << dtype;
  }
}

TEST(Values, PlaceOfTheDifference) {
  at::Tensor a = at::zeros({2, 3});
  at::Tensor b = a.clone();
  b[1][2] = 4;
  EXPECT_EQ(compareValues(a, b, kTight).message, "[1, 2]: expected 0, got 4");
}

TEST(Tolerances, ExactForIntegersWiderForGradients) {
  const NumericProfile shallow{4, false};
  EXPECT_EQ(toleranceFor(at::kLong, shallow, false).relative, 0);
  const Tolerance forward = toleranceFor(at::kFloat, shallow, false);
  EXPECT_LT(forward.relative, 1e-5);
  EXPECT_LT(forward.relative, toleranceFor(at::kFloat, shallow, true).relative);
  EXPECT_LT(forward.relative, toleranceFor(at::kFloat, {40, true}, false).relative);
  EXPECT_LT(toleranceFor(at::kFloat, {40, true}, true).relative, 1e-3);
  EXPECT_EQ(toleranceFor(at::kComplexFloat, shallow, false).relative, forward.relative);
  EXPECT_LT(toleranceFor(at::kDouble, {40, true}, true).relative, 1e-11);
}

TEST(Rules, StridesThatAddressNothing) {
  EXPECT_TRUE(sameStrides({2, 1}, {1, 7}, {1, 1}));
  EXPECT_TRUE(sameStrides({0, 3}, {3, 1}, {1, 1}));
  EXPECT_FALSE(sameStrides({2, 3}, {3, 1}, {1, 2}));
}

TEST(Rules, Errors) {
  EXPECT_TRUE(sameError({"RuntimeError", "cast", ""}, {"IndexError", "cast", ""}));
  EXPECT_FALSE(sameError({"ValueError", "cast", ""}, {"IndexError", "cast", ""}));
  EXPECT_FALSE(sameError({"RuntimeError", "cast", ""}, {"RuntimeError", "view_of_leaf", ""}));
  EXPECT_TRUE(sameError({"RuntimeError", "cast", ""}, {"RuntimeError", "own_words", ""}));
}

}  // namespace
}  // namespace faultline
