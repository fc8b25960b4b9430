// No bytes whatever crash or hang the readers, and what they take is written and read back equal.
#include "engine/support/check.h"
#include "faultline/ir.h"
#include "fuzz/libfuzzer/target.h"
#include "generators/case/case.h"
#include "generators/choices/choices.h"

namespace faultline::fuzz {
namespace {

bool run(std::string_view bytes) {
  if (auto graph = readGraph(bytes)) {
    std::string text = writeGraph(**graph);
    auto again = readGraph(text);
    FAULTLINE_CHECK(again.has_value(), "a written graph is not read: " + again.error().str() + "\n" + text);
    FAULTLINE_CHECK(graphsEqual(**graph, **again),
                    "a graph changed: " + describeGraphDifference(**graph, **again));
    FAULTLINE_CHECK(writeGraph(**again) == text, "writing twice gives other bytes:\n" + text);
    seen(verifyGraph(**graph) ? "graph:verifies" : "graph:refused");
  }
  if (auto c = readCase(bytes)) {
    std::string text = writeCase(*c);
    auto again = readCase(text);
    FAULTLINE_CHECK(again.has_value(), "a written case is not read: " + again.error().str() + "\n" + text);
    FAULTLINE_CHECK(writeCase(*again) == text, "writing twice gives other bytes:\n" + text);
  }
  if (auto tape = readTape(bytes)) {
    auto again = readTape(writeTape(*tape));
    FAULTLINE_CHECK(again.has_value() && *again == *tape, "a tape changed: " + writeTape(*tape));
  }
  (void)fileKind(bytes);
  return true;
}

}  // namespace

const Target target{"reader", run, nullptr, nullptr};

}  // namespace faultline::fuzz
