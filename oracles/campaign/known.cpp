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

namespace {

bool explains(const KnownIssue& issue, std::string_view signature, const Case& c,
              std::string_view torch_version) {
  const Expectation range{"", issue.from, issue.to, true, {}};
  if (issue.signature != signature || !range.appliesTo(torch_version)) {
    return false;
  }
  const Trigger* trigger = findTrigger(issue.trigger);
  FAULTLINE_CHECK(trigger != nullptr, "known.def names no such trigger: " + issue.trigger);
  return trigger->holds(c);
}

}  // namespace

std::string knownIssueOf(std::string_view signature, const Case& c, std::string_view torch_version) {
  for (const KnownIssue& issue : knownIssues()) {
    if (explains(issue, signature, c, torch_version)) {
      return issue.id;
    }
  }
  return {};
}

bool isExplainedBy(std::string_view id, std::string_view signature, const Case& c,
                   std::string_view torch_version) {
  const std::vector<KnownIssue>& issues = knownIssues();
  return std::any_of(issues.begin(), issues.end(), [&](const KnownIssue& issue) {
    return issue.id == id && explains(issue, signature, c, torch_version);
  });
}

bool isSignatureOfKnownIssue(std::string_view signature) {
  const std::vector<KnownIssue>& issues = knownIssues();
  return std::any_of(issues.begin(), issues.end(),
                     [&](const KnownIssue& issue) { return issue.signature == signature; });
}

}  // namespace faultline
