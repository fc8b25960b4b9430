#include "oracles/campaign/known.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "oracles/campaign/campaign.h"
#include "oracles/campaign/case_files.h"
#include "oracles/campaign/setup.h"

namespace faultline {
namespace {

TEST(Known, RowsAreWhole) {
  std::set<std::string> ids;
  for (const KnownIssue& issue : knownIssues()) {
    EXPECT_TRUE(ids.insert(issue.id).second) << issue.id;
    EXPECT_GE(std::count(issue.signature.begin(), issue.signature.end(), '/'), 2) << issue.signature;
    EXPECT_FALSE(issue.help.empty()) << issue.id;
    EXPECT_TRUE(isSignatureOfKnownIssue(issue.signature));
  }
  EXPECT_FALSE(isSignatureOfKnownIssue("forward_equiv/engine/value"));
}

constexpr const char* kWritten = R"(faultline case 1
run: float32[3,4]:grad
graph(%x : Tensor):
  %a : Tensor = aten::mul(%x, %x)
  %b : Tensor = aten::t(%a)
  %c : Tensor = aten::relu_(%b)
  return (%c)
)";
constexpr const char* kSignature = "run_equiv/stock/throws/view_of_leaf";

TEST(Known, SignatureTriggerAndVersionMustFit) {
  const Case written = readCase(kWritten).value();
  EXPECT_EQ(knownIssueOf(kSignature, written, "2.15.0"), "view_of_product_written");
  EXPECT_EQ(knownIssueOf(kSignature, written, "2.10.0"), "") << "another torch";
  EXPECT_EQ(knownIssueOf("run_equiv/engine/throws/view_of_leaf", written, "2.15.0"), "") << "another group";
  std::string text = kWritten;
  text.replace(text.find("relu_"), 5, "relu");
  EXPECT_EQ(knownIssueOf(kSignature, readCase(text).value(), "2.15.0"), "") << "nothing is written";
}

TEST(Known, IsExplainedByTheRowAsked) {
  const Case written = readCase(kWritten).value();
  EXPECT_TRUE(isExplainedBy("view_of_product_written", kSignature, written, "2.15.0"));
  EXPECT_FALSE(isExplainedBy("view_of_product_lost", kSignature, written, "2.15.0"));
  EXPECT_FALSE(isExplainedBy("no_such_row", kSignature, written, "2.15.0"));
}

// Every row has a case that shows it, and what a case claims to show is a row that explains what it expects.
TEST(Known, EachIsShownByACaseOfTheCorpus) {
  const CaseFiles files = readCaseFiles({FAULTLINE_CORPUS "/known"});
  for (const Error& error : files.bad) {
    ADD_FAILURE() << error.str();
  }
  std::set<std::string> shown;
  for (const CaseFile& file : files.cases) {
    EXPECT_FALSE(file.value.known.empty()) << file.path << " says of which known issue it is";
    for (const std::string& id : file.value.known) {
      bool explained = false;
      for (const Expectation& expectation : file.value.expectations) {
        for (const std::string& signature : expectation.signatures) {
          explained = explained || isExplainedBy(id, signature, file.value, "2.15.0");
        }
      }
      EXPECT_TRUE(explained) << file.path << ": " << id;
      shown.insert(id);
    }
  }
  for (const KnownIssue& issue : knownIssues()) {
    EXPECT_EQ(shown.count(issue.id), 1U) << issue.id << " has no case in corpus/known";
  }
}

}  // namespace
}  // namespace faultline
