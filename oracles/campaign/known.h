// Which failures are known issues.
#pragma once
#include <string>
#include <string_view>

#include "generators/case/case.h"

namespace faultline {

// Id of the known issue that explains `signature` on this case with this torch; empty: none does.
std::string knownIssueOf(std::string_view signature, const Case& c, std::string_view torch_version);

// Whether the known issue `id` does, also where another row comes first.
bool isExplainedBy(std::string_view id, std::string_view signature, const Case& c,
                   std::string_view torch_version);

// Whether any row has this signature, whatever its trigger.
bool isSignatureOfKnownIssue(std::string_view signature);

}  // namespace faultline
