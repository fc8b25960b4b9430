#include "oracles/campaign/known.h"

#include "engine/support/check.h"
#include "oracles/campaign/campaign.h"
#include "oracles/campaign/triggers.h"

namespace faultline {

const std::vector<KnownIssue>& knownIssues() {
  static const std::vector<KnownIssue> issues{
#define FAULTLINE_KNOWN(id, signature, trigger, from, to, link, help) \
  {#id, signature, #trigger, from, to, link, help},
#include "oracles/campaign/known.def"
#undef FAULTLINE_KNOWN
  };
  return issues;
}

std::string knownIssueOf(std::string_view signature, const Case& c, std::string_view torch_version) {
  for (const KnownIssue& issue : knownIssues()) {
    const Expectation range{"", issue.from, issue.to, true, {}};
    if (issue.signature != signature || !range.appliesTo(torch_version)) {
      continue;
    }
    const Trigger* trigger = findTrigger(issue.trigger);
    FAULTLINE_CHECK(trigger != nullptr, "known.def names no such trigger: " + issue.trigger);
    if (trigger->holds(*c.graph)) {
      return issue.id;
    }
  }
  return {};
}

bool isSignatureOfKnownIssue(std::string_view signature) {
  const std::vector<KnownIssue>& issues = knownIssues();
  return std::any_of(issues.begin(), issues.end(),
                     [&](const KnownIssue& issue) { return issue.signature == signature; });
}

}  // namespace faultline
