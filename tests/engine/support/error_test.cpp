#include "faultline/error.h"

#include <gtest/gtest.h>

#include "engine/support/check.h"

namespace faultline {
namespace {

TEST(Error, NamesOnlyThePartsThatAreKnown) {
  Error error = fail(ErrorKind::Syntax, "expected ')'", SourceLocation{3, 7}).value();
  EXPECT_EQ(error.str(), "3:7: expected ')'");
  error.file = "a.case";
  EXPECT_EQ(error.str(), "a.case:3:7: expected ')'");
  error.where.reset();
  EXPECT_EQ(error.str(), "a.case: expected ')'");
  error.file.clear();
  EXPECT_EQ(error.str(), "expected ')'");
}

TEST(CheckDeathTest, AbortsWithTheMessage) {
  EXPECT_DEATH(FAULTLINE_CHECK(1 == 2, std::string("numbers broke")),
               "broken invariant.*1 == 2: numbers broke");
}

}  // namespace
}  // namespace faultline
