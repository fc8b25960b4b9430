#include "engine/support/decisive_line.h"

#include <string>

#include <gtest/gtest.h>

namespace faultline {
namespace {

// Of an archive whose op raises: the sources' lines are indented, but for a def's.
std::string raising(const std::string& end) {
  return "The following operation failed in the TorchScript interpreter.\n"
         "Traceback of TorchScript, serialized code (most recent call last):\n"
         "  File \"code/__torch__.py\", line 9, in op\n"
         "    _0 = bool(torch.lt(torch.sum(x), 1000000000.))\n"
         "    if _0:\n"
         "      ops.prim.RaiseException(\"no good\", \"builtins.ValueError\")\n"
         "      ~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n"
         "else:\n"
         "  pass\n"
         "\n"
         "Traceback of TorchScript, original code (most recent call last):\n"
         "  File \"m8.py\", line 11, in op\n"
         "def ve(x):\n"
         "    if bool(x.sum()<1e9): raise ValueError(\"no good\")\n"
         "                          ~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE\n"
         "    return x*2\n" +
         end;
}

TEST(DecisiveLine, TheInnermostRuntimeErrorDecides) {
  EXPECT_EQ(decisiveLine(
                "RuntimeError: The following operation failed.\nTraceback\n  RuntimeError: inner words\n\n"),
            "inner words");
  EXPECT_EQ(decisiveLine("\n  first words\nHint: more"), "first words");
  EXPECT_EQ(decisiveLine(""), "");
  EXPECT_EQ(decisiveLine("RuntimeError:\n  on the next line"), "on the next line");
}

TEST(DecisiveLine, OtherClassesThanRuntimeErrorStandBehindATracebackToo) {
  EXPECT_EQ(decisiveLine(raising("builtins.ValueError: no good\n")), "builtins.ValueError: no good");
  EXPECT_EQ(decisiveLine(raising("builtins.RuntimeError: no good\n")), "no good");
  EXPECT_EQ(decisiveLine(raising("RuntimeError: AssertionError: rows\n")), "AssertionError: rows");
  EXPECT_EQ(decisiveLine(raising("__torch__.Mine: own\n")), "__torch__.Mine: own");
  EXPECT_EQ(decisiveLine(raising("builtins.ValueError: \n")), "builtins.ValueError:");
  // One inside the other: the innermost is last.
  EXPECT_EQ(decisiveLine(raising("RuntimeError: " + raising("builtins.KeyError: k\n"))),
            "builtins.KeyError: k");
  EXPECT_EQ(decisiveLine(raising("builtins.KeyError: " + raising("RuntimeError: k\n"))), "k");
  // Later lines of a message, and texts without a traceback.
  EXPECT_EQ(decisiveLine(raising("builtins.ValueError: no good\ntorch.mm: see there\n")),
            "builtins.ValueError: no good");
  EXPECT_EQ(decisiveLine("no good\nbuiltins.ValueError: see there"), "no good");
}

}  // namespace
}  // namespace faultline
