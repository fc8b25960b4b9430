// Shared by the tests of this folder.
#pragma once
#include <gtest/gtest.h>

#include "faultline/ir.h"

namespace faultline::testing {

// The graph, or a failed test and an empty graph.
inline std::shared_ptr<Graph> mustRead(std::string_view text) {
  auto graph = readGraph(text);
  if (!graph) {
    ADD_FAILURE() << graph.error().str() << "\n" << text;
    return std::make_shared<Graph>();
  }
  return *graph;
}

// "LINE:COLUMN: message" of the error; "no error" if there is none.
inline std::string readError(std::string_view text) {
  const auto graph = readGraph(text);
  return graph ? "no error" : graph.error().str();
}

// read ∘ write is the identity on graphs, and on text that was written.
inline void expectRoundTrip(const Graph& graph) {
  const std::string text = writeGraph(graph);
  EXPECT_EQ(writeGraph(graph), text);
  const auto again = readGraph(text);
  ASSERT_TRUE(again) << again.error().str() << "\n" << text;
  EXPECT_EQ(describeGraphDifference(graph, **again), "") << text;
  EXPECT_EQ(writeGraph(**again), text);
}

inline void expectSound(const Graph& graph) {
  const auto verified = verifyGraph(graph);
  EXPECT_TRUE(verified) << verified.error().str() << "\n" << graph.toString();
  expectRoundTrip(graph);
}

}  // namespace faultline::testing
