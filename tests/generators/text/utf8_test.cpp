#include "generators/text/utf8.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(Utf8, KnowsSequencesFromOtherBytes) {
  EXPECT_EQ(utf8Sequence("a", 0), 1u);
  EXPECT_EQ(utf8Sequence("é", 0), 2u);
  EXPECT_EQ(utf8Sequence("a…", 1), 3u);
  EXPECT_EQ(utf8Sequence("\xf0\x9f\x98\x80", 0), 4u);
  EXPECT_EQ(utf8Sequence("…", 1), 0u) << "in the middle of one";
  EXPECT_EQ(utf8Sequence("\xe2\x80", 0), 0u) << "cut short";
  EXPECT_EQ(utf8Sequence("\xb3", 0), 0u);
  EXPECT_EQ(utf8Sequence("\xc0\x80", 0), 0u) << "longer than it need be";
  EXPECT_EQ(utf8Sequence("\xff", 0), 0u);
}

}  // namespace
}  // namespace faultline
