#include "oracles/campaign/known.h"

#include <gtest/gtest.h>

#include "faultline/ir.h"
#include "oracles/campaign/campaign.h"
#include "oracles/campaign/triggers.h"

namespace faultline {
namespace {

bool holds(const std::string& trigger, const std::string& body) {
  const auto graph =
      readGraph("graph(%x : Tensor, %y : Tensor):\n  %one : int = prim::Constant[value=1]()\n" + body);
  if (!graph) {
    ADD_FAILURE() << graph.error().str();
    return false;
  }
  return findTrigger(trigger)->holds(**graph);
}

TEST(Trigger, WriteIntoUnlistedView) {
  const std::string name = "write_into_unlisted_view";
  const std::string product = "  %a : Tensor = aten::mul(%x, %y)\n";
  EXPECT_TRUE(holds(name, product + "  %b : Tensor = aten::t(%a)\n"
                                    "  %c : Tensor = aten::add_(%b, %b, %one)\n  return (%c)\n"));
  EXPECT_TRUE(holds(name, product + "  %b : Tensor = aten::unsqueeze(%a, %one)\n"
                                    "  %c : Tensor = aten::detach(%b)\n"
                                    "  %d : Tensor = aten::select(%b, %one, %one)\n"
                                    "  %e : Tensor = aten::zero_(%d)\n  return (%c)\n"))
      << "through a further view";
  EXPECT_TRUE(holds(name, product + "  %b : Tensor = aten::t(%a)\n  %c : Tensor = aten::relu_(%b)\n"
                                    "  %d : Tensor = aten::relu_(%c)\n  return (%b)\n"));
  EXPECT_FALSE(holds(name, product + "  %b : Tensor = aten::t(%a)\n"
                                     "  %c : Tensor = aten::add(%b, %b, %one)\n  return (%c)\n"))
      << "not written";
  EXPECT_FALSE(holds(name, product + "  %b : Tensor = aten::transpose(%a, %one, %one)\n"
                                     "  %c : Tensor = aten::add_(%b, %b, %one)\n  return (%c)\n"))
      << "a listed view";
  EXPECT_FALSE(holds(name, product + "  %b : Tensor = aten::t(%a)\n"
                                     "  %c : Tensor = aten::mul(%b, %b)\n"
                                     "  %d : Tensor = aten::add_(%c, %b, %one)\n  return (%d)\n"))
      << "written is something else";
}

TEST(Known, RowsAreWhole) {
  std::set<std::string> ids;
  for (const KnownIssue& issue : knownIssues()) {
    EXPECT_TRUE(ids.insert(issue.id).second) << issue.id;
    EXPECT_NE(findTrigger(issue.trigger), nullptr) << issue.id;
    EXPECT_GE(std::count(issue.signature.begin(), issue.signature.end(), '/'), 2) << issue.signature;
    EXPECT_FALSE(issue.help.empty()) << issue.id;
    EXPECT_TRUE(isSignatureOfKnownIssue(issue.signature));
  }
  EXPECT_FALSE(isSignatureOfKnownIssue("forward_equiv/engine/value"));
}

}  // namespace
}  // namespace faultline
