#include <fmt/format.h>

#include "oracles/campaign/assess.h"
#include "oracles/campaign/campaign.h"
#include "oracles/campaign/case_files.h"
#include "oracles/campaign/conductor.h"
#include "oracles/campaign/interrupts.h"
#include "oracles/campaign/known.h"
#include "oracles/campaign/out_dir.h"
#include "oracles/campaign/setup.h"
#include "oracles/lane.h"

namespace faultline {

namespace {

// One case file and what is demanded of it.
struct Replay {
  const CaseFile* file = nullptr;
  // What is demanded of a group of lanes, or of one lane: signatures, sorted; empty: pass.
  std::map<std::string, std::vector<std::string>> expected;
  std::vector<std::string> lanes;
  std::string skip;  // why it is not judged at all
};

// `name` is that of a group or of a lane.
std::vector<std::string> lanesNamed(const std::string& name) {
  std::vector<std::string> lanes = lanesOfGroups({name});
  if (lanes.empty() && name != "reference" && findLane(name) != nullptr) {
    lanes.push_back(name);
  }
  return lanes;
}

// What the case says about the lane itself goes before what it says about the lane's group.
const std::string& subjectOf(const Replay& replay, const Judgement& judgement) {
  return replay.expected.count(judgement.lane) != 0 ? judgement.lane : judgement.group;
}

bool sharesLane(const std::string& name, const std::vector<std::string>& wanted) {
  const std::vector<std::string> lanes = lanesNamed(name);
  return std::any_of(lanes.begin(), lanes.end(), [&](const std::string& lane) {
    return std::find(wanted.begin(), wanted.end(), lane) != wanted.end();
  });
}

// `wanted`: the lanes asked for on the command line, empty: whatever the expectations name.
Replay plan(const CaseFile& file, const std::vector<std::string>& wanted,
            const std::vector<std::string>& fallback) {
  Replay replay;
  replay.file = &file;
  std::set<std::string> lanes;
  for (const Expectation& expectation : file.value.expectations) {
    const bool concerned = wanted.empty() || sharesLane(expectation.group, wanted);
    if (expectation.appliesTo(torchVersion()) && concerned) {
      std::vector<std::string>& signatures = replay.expected[expectation.group];
      signatures.insert(signatures.end(), expectation.signatures.begin(), expectation.signatures.end());
      const std::vector<std::string> named = lanesNamed(expectation.group);
      lanes.insert(named.begin(), named.end());
    }
  }
  for (auto& [group, signatures] : replay.expected) {
    std::sort(signatures.begin(), signatures.end());
    signatures.erase(std::unique(signatures.begin(), signatures.end()), signatures.end());
  }
  if (!file.value.expectations.empty()) {
    for (const LaneInfo& lane : allLanes()) {
      if (lanes.count(lane.name) != 0) {
        replay.lanes.push_back(lane.name);
      }
    }
    replay.skip = replay.expected.empty() ? "no_expectation_for_this_torch_or_lane" : "";
    return replay;
  }
  // Nothing is written down: it should pass.
  replay.lanes = wanted.empty() ? fallback : wanted;
  for (const std::string& lane : replay.lanes) {
    replay.expected[findLane(lane)->group];
  }
  return replay;
}

class Replayer {
 public:
  Replayer(const ReplayOptions& options, CampaignSummary summary)
      : options_(options), summary_(std::move(summary)) {}

  Result<CampaignSummary> run(const std::vector<Replay>& replays, const std::vector<OtherTorch>& other_torch);

 private:
  Result<Conductor::Then> commit(const Replay& replay, JobOutcome outcome);
  void checkKnown(const Replay& replay, std::vector<ReplayOutcome>& outcomes) const;
  Result<std::optional<Assessment>> repeat(const Replay& replay, const Job& job, bool died);
  ReplayOutcome compare(const Replay& replay, const std::string& subject, const Assessment& seen) const;
  void skip(const std::string& path, const std::string& reason, const std::string& counted_as);
  void count(const Replay& replay, const std::vector<ReplayOutcome>& outcomes, const CaseResult& result);

  const ReplayOptions& options_;
  CampaignSummary summary_;
  std::unique_ptr<JobRunner> runner_;
  std::unique_ptr<Conductor> conductor_;
};

// Why nothing was compared about this subject; empty: something was, or failed.
std::string subjectSkip(const Replay& replay, const CaseResult& result, const std::string& subject) {
  // Groups of deaths outside the lanes that are judged: that nobody died is all there is to see.
  if (isDeathGroup(subject)) {
    return result.skip;
  }
  if (lanesNamed(subject).empty()) {
    return "no_lane_of_this_name";
  }
  CaseResult part;
  part.skip = result.skip;
  for (const Judgement& judgement : result.judgements) {
    if (subjectOf(replay, judgement) == subject) {
      part.judgements.push_back(judgement);
    }
  }
  return skipReason(part);
}

ReplayOutcome Replayer::compare(const Replay& replay, const std::string& subject,
                                const Assessment& seen) const {
  using Kind = ReplayOutcome::Kind;
  ReplayOutcome outcome;
  outcome.case_path = replay.file->path;
  outcome.group = subject;
  const auto expected = replay.expected.find(subject);
  if (expected != replay.expected.end()) {
    outcome.expected = expected->second;
  }
  const auto concerned = [&](const Judgement& judgement) { return subjectOf(replay, judgement) == subject; };
  outcome.got = seen.always(concerned);
  const std::vector<std::string> ever = seen.ever(concerned);
  bool unexpected = false;
  for (const Judgement& judgement : seen.repeats.front().judgements) {
    if (!judgement.verdict.failed() || !concerned(judgement) || unexpected) continue;
    unexpected = std::count(outcome.expected.begin(), outcome.expected.end(), judgement.signature) == 0;
    if (unexpected || outcome.detail.empty()) outcome.detail = judgement.verdict.message();
  }
  const bool same = outcome.got == outcome.expected && ever == outcome.got;
  const std::string skipped = subjectSkip(replay, seen.repeats.front(), subject);
  if (same && !outcome.got.empty()) {
    outcome.kind = Kind::AsExpected;
  } else if (ever != outcome.got) {
    outcome.kind = Kind::Flaky;
    outcome.got = ever;
  } else if (outcome.got.empty() && !skipped.empty()) {
    // A failure on record that is no longer judged must not get lost in silence.
    outcome.kind = outcome.expected.empty() ? Kind::Skipped : Kind::Changed;
    outcome.reason = skipped;
  } else if (same) {
    outcome.kind = Kind::AsExpected;
  } else {
    outcome.kind = outcome.expected.empty() ? Kind::New : outcome.got.empty() ? Kind::Stale : Kind::Changed;
  }
  return outcome;
}

// A case that names known issues is there to show them: each must still explain a failure that is expected.
void Replayer::checkKnown(const Replay& replay, std::vector<ReplayOutcome>& outcomes) const {
  for (const std::string& id : replay.file->value.known) {
    ReplayOutcome* fails = nullptr;
    bool explained = false;
    for (ReplayOutcome& outcome : outcomes) {
      for (const std::string& signature : outcome.expected) {
        fails = &outcome;
        explained = explained || isExplainedBy(id, signature, replay.file->value, torchRelease());
      }
    }
    if (fails != nullptr && !explained && fails->kind == ReplayOutcome::Kind::AsExpected) {
      fails->kind = ReplayOutcome::Kind::Stale;
      fails->reason =
          fmt::format("known issue {} does not explain it: no such row, or its trigger does not hold", id);
    }
  }
}

Result<std::optional<Assessment>> Replayer::repeat(const Replay& replay, const Job& job, bool died) {
  return assess(*conductor_, job, replay.file->text, replay.lanes, died);
}

void Replayer::skip(const std::string& path, const std::string& reason, const std::string& counted_as) {
  ReplayOutcome outcome;
  outcome.kind = ReplayOutcome::Kind::Skipped;
  outcome.case_path = path;
  outcome.reason = reason;
  summary_.outcomes.push_back(std::move(outcome));
  ++summary_.cases;
  ++summary_.skipped[counted_as];
}

void Replayer::count(const Replay& replay, const std::vector<ReplayOutcome>& outcomes,
                     const CaseResult& result) {
  using Kind = ReplayOutcome::Kind;
  std::map<Kind, uint64_t> of_kind;
  for (const ReplayOutcome& outcome : outcomes) {
    ++of_kind[outcome.kind];
    summary_.outcomes.push_back(outcome);
    if (outcome.kind != Kind::New && outcome.kind != Kind::Changed) {
      continue;
    }
    for (const Judgement& judgement : result.judgements) {
      const bool asked = judgement.verdict.failed() && subjectOf(replay, judgement) == outcome.group &&
                         std::find(outcome.expected.begin(), outcome.expected.end(), judgement.signature) ==
                             outcome.expected.end();
      const auto& groups = summary_.failures;
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const FailureGroup& candidate) {
        return candidate.signature == judgement.signature;
      });
      if (asked && group == groups.end()) {
        summary_.failures.push_back({judgement.signature, judgement.oracle, judgement.lane,
                                     toString(judgement.verdict.kind()), "", "", 1, summary_.cases,
                                     outcome.case_path, judgement.verdict.message()});
      } else if (asked) {
        ++summary_.failures[static_cast<size_t>(group - groups.begin())].count;
      }
    }
  }
  ++summary_.cases;
  if (of_kind[Kind::New] + of_kind[Kind::Stale] + of_kind[Kind::Changed] != 0) {
    ++summary_.failed;
  } else if (of_kind[Kind::Flaky] != 0) {
    ++summary_.flaky;
  } else if (of_kind[Kind::AsExpected] != 0) {
    ++summary_.passed;
  } else {
    ++summary_.skipped[outcomes.empty() ? "nothing_compared" : outcomes.front().reason];
  }
}

Result<Conductor::Then> Replayer::commit(const Replay& replay, JobOutcome outcome) {
  Assessment seen;
  if (!outcome.death && outcome.report.results.empty()) {
    return fail(ErrorKind::Io,
                fmt::format("a worker cannot read {}: {}", replay.file->path, outcome.report.error));
  }
  if (!outcome.death) {
    seen.repeats = {outcome.report.results.front()};
  }
  const auto judge = [&] {
    std::set<std::string> subjects;
    for (const auto& [subject, signatures] : replay.expected) {
      subjects.insert(subject);
    }
    for (const Judgement& judgement : seen.repeats.front().judgements) {
      if (judgement.verdict.failed()) {
        subjects.insert(subjectOf(replay, judgement));  // the reference may die, too
      }
    }
    std::vector<ReplayOutcome> outcomes;
    for (const std::string& subject : subjects) {
      outcomes.push_back(compare(replay, subject, seen));
    }
    return outcomes;
  };
  std::vector<ReplayOutcome> outcomes;
  bool doubtful = outcome.death.has_value();
  if (!doubtful) {
    outcomes = judge();
    doubtful = std::any_of(outcomes.begin(), outcomes.end(), [](const ReplayOutcome& one) {
      return one.kind != ReplayOutcome::Kind::AsExpected && one.kind != ReplayOutcome::Kind::Skipped;
    });
  }
  if (doubtful) {
    Result<std::optional<Assessment>> repeated = repeat(replay, outcome.job, outcome.death.has_value());
    if (!repeated) {
      return tl::make_unexpected(repeated.error());
    }
    if (!*repeated) {
      return Conductor::Then::Stop;
    }
    // The first look counts, too: a verdict that came once and not again is flaky.
    (*repeated)->repeats.insert((*repeated)->repeats.end(), seen.repeats.begin(), seen.repeats.end());
    seen = std::move(**repeated);
    outcomes = judge();
  }
  if (!options_.ignore_known) {
    for (ReplayOutcome& one : outcomes) {
      const auto known = [&](const std::string& signature) {
        return !knownIssueOf(signature, replay.file->value, torchVersion()).empty();
      };
      if (one.kind == ReplayOutcome::Kind::New && std::all_of(one.got.begin(), one.got.end(), known)) {
        one.kind = ReplayOutcome::Kind::AsExpected;
        one.reason = "known_issue";
      }
    }
  }
  checkKnown(replay, outcomes);
  tally(summary_, seen.repeats.front());
  for (const std::string& trait : outcome.report.traits) {
    ++summary_.traits[trait];
  }
  count(replay, outcomes, seen.repeats.front());
  const uint64_t limit = options_.exit_first ? 1 : options_.max_failures;
  summary_.stopped_early = limit != 0 && summary_.newFailures() >= limit;
  return summary_.stopped_early ? Conductor::Then::Stop : Conductor::Then::GoOn;
}

Result<CampaignSummary> Replayer::run(const std::vector<Replay>& replays,
                                      const std::vector<OtherTorch>& other_torch) {
  const Interrupts interrupts(options_.in_process);
  const Clock::time_point begin = Clock::now();
  // Only for the flight recorders.
  Result<std::unique_ptr<OutDir>> scratch = OutDir::open("", false);
  if (!scratch) {
    return tl::make_unexpected(scratch.error());
  }
  const auto report = [&](bool last) {
    summary_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (options_.progress) {
      options_.progress({summary_, summary_.seconds, last});
    }
  };
  std::vector<const Replay*> judged;
  for (const OtherTorch& file : other_torch) {
    skip(file.path, file.reason, "op_missing_in_torch_" + torchRelease());
  }
  for (const Replay& replay : replays) {
    if (replay.skip.empty()) {
      judged.push_back(&replay);
    } else {
      skip(replay.file->path, replay.skip, replay.skip);
    }
  }
  runner_ = makeRunner(runnerOptions(options_, (*scratch)->inflight()));
  conductor_ = std::make_unique<Conductor>(
      *runner_, [&] { report(false); }, std::nullopt);
  const auto source = [&](uint64_t position) -> std::optional<Job> {
    if (position >= judged.size()) {
      return std::nullopt;
    }
    Job job = jobTemplate(options_, judged[position]->lanes);
    job.text = judged[position]->file->text;
    return job;
  };
  Result<void> done = conductor_->run(0, source, [&](uint64_t position, JobOutcome outcome) {
    return commit(*judged[position], std::move(outcome));
  });
  runner_.reset();
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  summary_.interrupted_by = Interrupts::caught();
  report(true);
  return summary_;
}

}  // namespace

Result<CampaignSummary> replayCampaign(const ReplayOptions& options) {
  Result<void> checked = checkOptions(options);
  if (!checked) {
    return tl::make_unexpected(checked.error());
  }
  Result<std::vector<std::string>> wanted =
      options.lanes.empty() ? std::vector<std::string>{} : lanesOf(options.lanes);
  Result<std::vector<std::string>> fallback = lanesOf({"engine"});
  if (!wanted || !fallback) {
    return tl::make_unexpected(wanted ? fallback.error() : wanted.error());
  }
  CaseFiles files = readCaseFiles(options.paths);
  CampaignSummary summary;
  summary.command = "replay";
  summary.torch = torchVersion();
  summary.bad_inputs = std::move(files.bad);
  summary.other_files = files.other_files;
  summary.set_aside = files.set_aside;
  std::vector<Replay> replays;
  std::set<std::string> lanes;
  for (const CaseFile& file : files.cases) {
    replays.push_back(plan(file, *wanted, *fallback));
    lanes.insert(replays.back().lanes.begin(), replays.back().lanes.end());
  }
  for (const LaneInfo& lane : allLanes()) {
    if (lanes.count(lane.name) != 0) {
      summary.lanes.push_back(lane.name);
    }
  }
  prepareTallies(summary, options.oracles);
  Replayer replayer(options, std::move(summary));
  return replayer.run(replays, files.other_torch);
}

}  // namespace faultline
