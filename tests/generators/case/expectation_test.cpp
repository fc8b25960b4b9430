#include "generators/case/expectation.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

Expectation read(const std::string& text) {
  Scanner scanner(text);
  auto expectation = scanExpectation(scanner);
  EXPECT_TRUE(expectation) << text << ": " << expectation.error().str();
  return expectation.value_or(Expectation{});
}

TEST(Expectation, TextSurvives) {
  for (const char* text :
       {"stock pass", "engine.broken@2.15 pass", "stock@..2.13 a/b/c", "stock@2.11..2.13 a/b/c/d_e a/b/f",
        "stock@2.13.. \"a/b/c/two words\"", "device@2.15.0.1 pass"}) {
    EXPECT_EQ(writeExpectation(read(text)), text);
  }
}

TEST(Expectation, VersionsCompareAsNumbers) {
  struct Row {
    const char* text;
    const char* version;
    bool applies;
  };
  for (const Row& row :
       {Row{"s pass", "2.11.0", true}, Row{"s@2.13.. pass", "2.13.0", true},
        Row{"s@2.13.. pass", "2.9.1", false}, Row{"s@2.9.. pass", "2.13.0", true},
        Row{"s@2.13.. pass", "2.12.9", false}, Row{"s@2.13.. pass", "3.0", true},
        Row{"s@..2.13 pass", "2.13.5", true}, Row{"s@..2.13 pass", "2.14.0", false},
        Row{"s@..2.13 pass", "1.13", true}, Row{"s@2.11..2.13 pass", "2.11.0", true},
        Row{"s@2.11..2.13 pass", "2.10.2", false}, Row{"s@2.11..2.13 pass", "2.13.1+cpu", true},
        Row{"s@2.11..2.13 pass", "2.14", false}, Row{"s@2.15 pass", "2.15.0", true},
        Row{"s@2.15 pass", "2.15.3+cu130", true}, Row{"s@2.15 pass", "2.16.0a0+git1", false},
        Row{"s@2.15.1 pass", "2.15", false}, Row{"s@2.15.0 pass", "2.15", true},
        Row{"s@2.15 pass", "2.150", false}}) {
    EXPECT_EQ(read(row.text).appliesTo(row.version), row.applies) << row.text << " on " << row.version;
  }
}

}  // namespace
}  // namespace faultline
