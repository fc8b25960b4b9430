// What the commands `fuzz`, `replay` and `check` do, without their command line: make or read cases, have
// workers judge them, group failures, write --out.
//
// An Error of kind Io means that faultline itself failed (exit code 4: no worker could be started, disk
// full); every other kind is the user's input (exit code 2). SIGINT, SIGTERM and SIGHUP end a campaign early
// with a usable summary: their handlers are set while one runs. Threading: one campaign at a time in a
// process.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "faultline/error.h"
#include "generators/case/case.h"
#include "oracles/campaign/summary.h"

namespace faultline {

struct CampaignProgress {
  const CampaignSummary& so_far;  // totals of what is judged for good
  double seconds = 0;             // since the start
  bool last = false;              // the final call
};

struct CampaignOptions {
  std::vector<std::string> lanes;    // names or groups; empty: the command's default
  std::vector<std::string> oracles;  // empty: all
  bool strict = false;               // hook_order compares total orders
  unsigned jobs = 0;                 // worker processes; 0: one per core
  bool in_process = false;           // no processes: for debuggers and sanitizers. A crash ends the program
  double case_timeout = 30;          // seconds for one case, all lanes; a worker that passes it is killed
  uint64_t rss_limit_mb = 2048;      // a worker above it is killed; 0: no limit
  uint64_t renew_after = 2000;       // cases after which a worker is replaced by a fresh one
  bool exit_first = false;           // stop at the first new failure
  uint64_t max_failures = 0;         // stop at that many distinct new failures; 0: never
  bool ignore_known = false;         // known issues count as new
  std::vector<std::string> plugins;  // shared libraries that workers load first
  std::vector<std::string> worker_command;  // empty: {"/proc/self/exe", "worker"}
  std::function<void(const CampaignProgress&)>
      progress;  // a few times a second and once at the end; may be empty
};

struct FuzzOptions : CampaignOptions {  // default lanes: engine
  std::optional<uint64_t> cases;  // generated ones; with neither `cases` nor `seconds`: until interrupted
  std::optional<double> seconds;
  std::optional<uint64_t> seed;                     // none: a random one, or with `resume` that of the folder
  std::vector<std::string> ops_added, ops_removed;  // --ops +a,-b, without the sign
  std::vector<std::string> features;                // "+x", "-x"
  std::string seeds_dir =
      "corpus/seeds";   // judged before anything is generated, where it exists; empty: --no-seeds
  std::string out_dir;  // empty: none
  bool resume = false;
};
// The same options, seed and torch give the same summary whatever `jobs` is (times and flaky failures
// excepted).
Result<CampaignSummary> fuzzCampaign(const FuzzOptions& options);

// Default lanes: those that the expectations name; `engine` for cases without any. With `lanes` only
// expectations that concern these. Every path must exist and be a case file, a folder or an --out folder;
// files that cannot be read as cases stand in `bad_inputs` of the summary, the others are judged
// nevertheless.
struct ReplayOptions : CampaignOptions {
  std::vector<std::string> paths;
};
Result<CampaignSummary> replayCampaign(const ReplayOptions& options);

struct NamedCase {
  std::string name;  // for reports: the model's file name
  Case value;
};
// Reason of the skip of a case whose reference takes so long that no time is left for lanes.
inline constexpr const char* kReferenceTimeout = "reference_timeout";
struct CheckOptions : CampaignOptions {  // default lanes: engine, stock
  std::vector<NamedCase> cases;
  std::string out_dir;  // as in FuzzOptions; empty: none
};
Result<CampaignSummary> checkCampaign(const CheckOptions& options);

struct KnownIssue {
  std::string id;         // "view_of_leaf"
  std::string signature;  // of the failure
  std::string trigger;    // name of a structural predicate on the graph (oracles/campaign/triggers.h)
  std::string from, to;   // torch versions, empty: open
  std::string link, help;
};
const std::vector<KnownIssue>& knownIssues();  // known.def

}  // namespace faultline
