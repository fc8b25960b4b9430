#include "faultline/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace faultline::test {
namespace {

using What = TimelineEvent::What;

TEST(Timeline, NumbersBeginningsAndKeepsEnds) {
  Timeline timeline;
  const uint64_t a = timeline.begin(What::Forward, 0);
  timeline.end(a);
  const uint64_t b = timeline.begin(What::Backward, 0);
  timeline.hook("w");
  timeline.end(b);
  const auto events = timeline.events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].seq, 0u);
  EXPECT_EQ(events[1].seq, 1u);
  EXPECT_EQ(events[2].seq, 2u);
  EXPECT_EQ(events[2].name, "w");
  EXPECT_EQ(events[2].piece, 0);
  EXPECT_GE(events[1].end_us, events[2].begin_us);
  EXPECT_EQ(events[2].begin_us, events[2].end_us);
}

TEST(Timeline, AHookBelongsToThePieceWhoseBackwardBeganLast) {
  Timeline timeline;
  timeline.hook("before any");
  timeline.begin(What::Backward, 3);
  timeline.begin(What::Backward, 2);
  timeline.hook("after 2");
  timeline.begin(What::Forward, 0);
  timeline.hook("after a forward");
  const auto events = timeline.events();
  EXPECT_EQ(events[0].piece, -1);
  EXPECT_EQ(events[3].piece, 2);
  EXPECT_EQ(events[5].piece, -1);
}

TEST(Timeline, WithoutAnEndAnEventLastsUntilTheNextBegins) {
  Timeline timeline;
  timeline.begin(What::Backward, 1);
  timeline.hook("w");
  timeline.end(timeline.begin(What::Backward, 0));
  const auto events = timeline.events();
  EXPECT_EQ(events[0].end_us, events[2].begin_us);
}

TEST(Timeline, ClearForgetsAndIgnoresEndsFromBefore) {
  Timeline timeline;
  const uint64_t before = timeline.begin(What::Forward, 0);
  timeline.clear();
  EXPECT_TRUE(timeline.events().empty());
  const uint64_t after = timeline.begin(What::Forward, 1);
  timeline.end(before);
  EXPECT_NE(before, after);
  EXPECT_EQ(timeline.events().size(), 1u);
}

TEST(Timeline, KeepsTheNewestWhenItIsFull) {
  Timeline timeline;
  const uint64_t first = timeline.begin(What::Forward, 0);
  for (size_t i = 0; i < Timeline::capacity + 10; ++i) {
    timeline.hook("h");
  }
  timeline.end(first);
  const auto events = timeline.events();
  EXPECT_EQ(events.size(), Timeline::capacity);
  EXPECT_EQ(events.back().seq, Timeline::capacity + 10);
}

TEST(Timeline, ChromeTraceHasALanePerPiece) {
  Timeline timeline;
  timeline.end(timeline.begin(What::Forward, 0));
  timeline.end(timeline.begin(What::Backward, 0));
  timeline.hook("w\"0");
  const auto trace = nlohmann::json::parse(timeline.chromeTrace());
  std::vector<std::string> phases;
  for (const auto& row : trace["traceEvents"]) {
    phases.push_back(row["ph"]);
    EXPECT_EQ(row["tid"], 1);
  }
  EXPECT_THAT(phases, testing::ElementsAre("M", "X", "X", "i"));
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "piece0");
  EXPECT_EQ(trace["traceEvents"][3]["name"], "w\"0");
}

}  // namespace
}  // namespace faultline::test
