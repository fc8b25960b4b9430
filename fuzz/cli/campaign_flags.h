// Options that `fuzz`, `replay` and `check` share.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "faultline/error.h"
#include "oracles/campaign/campaign.h"

namespace CLI {
class App;
}

namespace faultline::cli {

struct CampaignFlags {
  std::vector<std::string> lanes, oracles, plugins;
  std::optional<uint64_t> jobs, rss_limit_mb;
  std::optional<double> case_timeout;
  bool strict = false, in_process = false;
  std::string json;
};

// For the help text, as README.md of fuzz has them.
inline constexpr const char* kCampaignExitCodes =
    "Exit code: 0 nothing new; 1 a new failure, a stale known issue or a changed\n"
    "verdict; 2 usage or bad input; 3 nothing was checked; 4 faultline itself failed;\n"
    "130, 143 interrupted with nothing new.";

// `default_lanes`: for the help text.
void addCampaign(CLI::App& app, CampaignFlags& flags, const std::string& default_lanes);

// Puts them into `options` and loads the plugins, so that their lanes are known here too. Refuses oracles and
// lanes that do not exist, naming the nearest.
Result<void> applyCampaign(const CampaignFlags& flags, CampaignOptions& options);

// " --lane stock --oracle run_equiv": judges what this failure was seen with, for a command to paste. Deaths
// are outside every lane or oracle at times: then that part is left out.
std::string judgedAs(const FailureGroup& failure, const CampaignFlags& flags);
std::string pluginArguments(const CampaignFlags& flags);  // " --plugin …", " --strict"

}  // namespace faultline::cli
