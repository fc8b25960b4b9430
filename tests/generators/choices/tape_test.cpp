#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "generators/choices/choices.h"

namespace faultline {
namespace {

using testing::HasSubstr;

// Opens and closes spans as a generator would, driven by its own choices.
void makeSpans(Choices& choices, int depth = 0) {
  static const std::vector<std::string> labels = {"op", "operand", "a label", "\"q\"", "", "x\n"};
  size_t parts = choices.below(4);
  for (size_t i = 0; i < parts && depth < 5; ++i) {
    Choices::Span span(choices, choices.pick(labels));
    makeSpans(choices, depth + 1);
  }
}

TEST(Tape, IsReadable) {
  Choices choices = Choices::fromTape({7, 1, 2, 3, 9});
  choices.below(100);
  {
    Choices::Span op(choices, "op");
    choices.below(100);
    {
      Choices::Span operand(choices, "left operand");
      choices.below(100);
      choices.below(100);
    }
  }
  choices.below(100);
  Tape tape = choices.tape();
  tape.options = {{"seed", "12"}, {"features", "+views -loops"}};
  const char* text =
      "faultline tape 1\n"
      "seed: 12\n"
      "features: +views -loops\n"
      "7\n"
      "op {\n"
      "  1\n"
      "  \"left operand\" {\n"
      "    2 3\n"
      "  }\n"
      "}\n"
      "9\n";
  EXPECT_EQ(writeTape(tape), text);
  EXPECT_EQ(readTape(text).value(), tape);
}

TEST(Tape, CommentsAndBlankLinesAreIgnored) {
  Tape tape =
      readTape("\n# made by hand\nfaultline tape 1 # version\r\n\nname: a b \r\n# c\n1 2 # three\n\nop{ 3}\n")
          .value();
  EXPECT_EQ(tape.choices, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(tape.spans, (std::vector<TapeSpan>{{"op", 2, 3, 0}}));
  EXPECT_EQ(tape.options.at(0).second, "a b");
}

RC_GTEST_PROP(Tape, ReadGivesWhatWasWritten, (uint64_t seed)) {
  Choices choices = Choices::fromSeed(seed);
  makeSpans(choices);
  Tape tape = choices.tape();
  RC_ASSERT(readTape(writeTape(tape)).value() == tape);
}

RC_GTEST_PROP(Tape, OptionValuesSurvive, (std::string value)) {
  Tape tape;
  tape.options = {{"a", value}, {"b", " " + value}, {"c", "\"" + value}};
  RC_ASSERT(readTape(writeTape(tape)).value() == tape);
}

TEST(Tape, SpansThatDoNotNestAreLeftOut) {
  Tape tape;
  tape.choices = {1, 2, 3, 4};
  tape.spans = {
      {"a", 0, 3, 0}, {"across", 2, 4, 1}, {"outside", 3, 9, 0}, {"b", 3, 4, 0}, {"backwards", 4, 2, 0}};
  Tape read = readTape(writeTape(tape)).value();
  EXPECT_EQ(read.choices, tape.choices);
  EXPECT_EQ(read.spans, (std::vector<TapeSpan>{{"a", 0, 3, 0}, {"b", 3, 4, 0}}));
}

struct BadTape {
  const char* text;
  size_t line, column;
  const char* message;
};

class TapeErrors : public testing::TestWithParam<BadTape> {};

TEST_P(TapeErrors, SayWhereAndWhatWasExpected) {
  auto tape = readTape(GetParam().text);
  ASSERT_FALSE(tape);
  ASSERT_TRUE(tape.error().where);
  EXPECT_EQ(tape.error().where->line, GetParam().line) << tape.error().str();
  EXPECT_EQ(tape.error().where->column, GetParam().column) << tape.error().str();
  EXPECT_THAT(tape.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, TapeErrors,
    testing::Values(BadTape{"", 1, 1, "expected 'faultline tape 1', got the end"},
                    BadTape{"# only a comment\n", 2, 1, "expected 'faultline tape 1'"},
                    BadTape{"faultline case 1\n", 1, 1,
                            "expected 'faultline tape 1', got 'faultline case 1'"},
                    BadTape{"faultline tape 2\n", 1, 16, "expected version 1, got '2'"},
                    BadTape{"faultline tape 1 x\n", 1, 18, "the end of the line"},
                    BadTape{"faultline tape 1\n1 -2\n", 2, 3, "expected a number or a label, got '-2'"},
                    BadTape{"faultline tape 1\n1 2x\n", 2, 5, "expected a blank behind a choice"},
                    BadTape{"faultline tape 1\nop {\n 1\n", 4, 1, "expected '}' that ends 'op', got the end"},
                    BadTape{"faultline tape 1\n}\n", 2, 1, "expected a number or a label"},
                    BadTape{"faultline tape 1\nop 1\n", 2, 4, "expected '{' behind a label"},
                    BadTape{"faultline tape 1\n\"op\n{}", 2, 4, "'\"' that ends the string"},
                    BadTape{"faultline tape 1\n18446744073709551616", 2, 1, "a choice below 2^64"}));

TEST(Tape, NestingHasALimitAndSoHasNoCrash) {
  std::string deep = "faultline tape 1\n";
  for (int i = 0; i < 100000; ++i) deep += "a{";
  auto tape = readTape(deep);
  ASSERT_FALSE(tape);
  EXPECT_THAT(tape.error().message, HasSubstr("at most 1000 nested labels"));
}

// Whatever is cut or changed, the reader answers, and what it accepts can be written and read again.
TEST(Tape, NoBytesBreakTheReader) {
  Random random(1);
  Choices choices = Choices::fromSeed(5);
  for (int i = 0; i < 5; ++i) makeSpans(choices);
  Tape tape = choices.tape();
  tape.options = {{"seed", "12"}};
  const std::string text = writeTape(tape);
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string mutated = text;
    for (uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      size_t at = random.below(mutated.size());
      switch (random.below(4)) {
        case 0:
          mutated[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          mutated.erase(at, random.below(20));
          break;
        case 2:
          mutated.insert(at, mutated.substr(random.below(mutated.size()), random.below(40)));
          break;
        default:
          mutated.resize(at + 1);
      }
      if (mutated.empty()) mutated = "x";
    }
    if (auto read = readTape(mutated)) {
      ++accepted;
      ASSERT_EQ(readTape(writeTape(*read)).value(), *read) << mutated;
    } else {
      ASSERT_TRUE(read.error().where) << mutated;
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace faultline
