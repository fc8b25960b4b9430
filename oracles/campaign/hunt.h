// The common part of `fuzz` and `check`: cases in, distinct failures out, each confirmed, saved and counted.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oracles/campaign/assess.h"
#include "oracles/campaign/campaign.h"
#include "oracles/campaign/conductor.h"
#include "oracles/campaign/out_dir.h"

namespace faultline {

class Hunt {
 public:
  // `summary` brings command, seed, lanes and, when resuming, all totals so far; `next` is the first
  // position. `state` is what the index keeps for --resume besides.
  Hunt(const CampaignOptions& options, OutDir& out, CampaignSummary summary, uint64_t next,
       nlohmann::json state);

  // `seeds`: positions below are those of seeds.
  Result<CampaignSummary> run(const Conductor::Source& source, uint64_t seeds,
                              std::optional<double> time_limit);

 private:
  struct Finding {
    Judgement judgement;
    std::string known;
  };
  // A judged case on its way into the totals.
  struct Catch {
    uint64_t position = 0;
    Job job;
    std::optional<Death> death;
    CaseResult result;
    std::string text;
    std::vector<Finding> findings;
    std::string log;
  };

  // That time ran out says nothing then of the lane in which it did.
  Result<bool> takesTooLongInEager(const Catch& caught);

  // These return false when a signal came: then nothing of the case is counted.
  Result<bool> recover(Catch& caught);
  Result<bool> confirm(Catch& caught, std::set<std::string>& flaky);
  Result<bool> confirmGenerator(Catch& caught, std::set<std::string>& flaky);

  Result<Conductor::Then> commit(uint64_t position, JobOutcome outcome, uint64_t seeds);
  std::vector<Finding> findingsOf(const CaseResult& result, const std::string& text) const;
  FailureGroup* groupOf(const Finding& finding);
  Result<void> add(const Catch& caught, const Finding& finding, const Assessment& assessment);
  Result<void> saveFlaky(const Catch& caught, const std::string& signature);
  // The case, or its tape where there is none, first.
  std::vector<OutDir::File> filesOf(const Catch& caught, const Finding& finding,
                                    const std::string& text) const;
  nlohmann::json infoOf(const Catch& caught, const Finding& finding) const;
  Result<void> writeIndex(bool sync);
  void updateSeconds();

  const CampaignOptions& options_;
  OutDir& out_;
  CampaignSummary summary_;
  uint64_t next_;
  nlohmann::json state_;
  std::unique_ptr<JobRunner> runner_;
  std::unique_ptr<Conductor> conductor_;
  Clock::time_point begin_, last_sync_, last_stats_;
  double seconds_before_ = 0;
  // A death while generating shows as one of the reference once the case is there: from signature to
  // signature.
  std::map<std::string, std::string> generator_deaths_;
  std::map<std::string, uint64_t> flaky_saved_;
};

}  // namespace faultline
