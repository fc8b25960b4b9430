#include "oracles/campaign/hunt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "generators/choices/choices.h"
#include "oracles/campaign/interrupts.h"
#include "oracles/campaign/known.h"
#include "oracles/campaign/setup.h"

namespace faultline {

using nlohmann::json;

namespace {

constexpr auto kSyncEvery = std::chrono::seconds(1);
constexpr auto kStatsEvery = std::chrono::seconds(5);
// Of one signature; more of the same accident teach nothing.
constexpr uint64_t kFlakySaved = 10;
constexpr unsigned kTimesSeen = 3;
constexpr const char* kTapeFile = "case.tape";

std::string signedWords(const std::vector<std::string>& added, const std::vector<std::string>& removed) {
  std::string words;
  for (const auto& [sign, list] : {std::pair{'+', &added}, std::pair{'-', &removed}}) {
    for (const std::string& word : *list) {
      words += (words.empty() ? "" : ",") + std::string(1, sign) + word;
    }
  }
  return words;
}

// The choices up to the death with all else that `faultline gen TAPE` needs to make them again.
std::string tapeOf(const GenerateSource& source, const FlightRecord& record) {
  Tape tape;
  tape.choices = record.choices;
  tape.options.emplace_back("seed", std::to_string(caseSeed(source.seed, source.index)));
  const std::string ops = signedWords(source.options.ops_added, source.options.ops_removed);
  if (!ops.empty()) {
    tape.options.emplace_back("ops", ops);
  }
  if (!source.options.features.empty()) {
    tape.options.emplace_back("features", fmt::format("{}", fmt::join(source.options.features, ",")));
  }
  return writeTape(tape);
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Two executions of the reference, and a lane that may take twice as long as eager.
constexpr double kTimesReference = 4;

}  // namespace

Hunt::Hunt(const CampaignOptions& options, OutDir& out, CampaignSummary summary, uint64_t next, json state)
    : options_(options), out_(out), summary_(std::move(summary)), next_(next), state_(std::move(state)) {
  prepareTallies(summary_, options_.oracles);
  seconds_before_ = summary_.seconds;
}

Result<CampaignSummary> Hunt::run(const Conductor::Source& source, uint64_t seeds,
                                  std::optional<double> time_limit) {
  const Interrupts interrupts(options_.in_process);
  begin_ = last_sync_ = last_stats_ = Clock::now();
  std::optional<Clock::time_point> stop_at;
  if (time_limit) {
    stop_at = begin_ + std::chrono::milliseconds(static_cast<int64_t>(*time_limit * 1000));
  }
  Result<void> done = writeIndex(true);
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  runner_ = makeRunner(runnerOptions(options_, out_.inflight()));
  const auto tick = [&] {
    updateSeconds();
    if (options_.progress) {
      options_.progress({summary_, summary_.seconds, false});
    }
  };
  conductor_ = std::make_unique<Conductor>(*runner_, tick, stop_at);
  done = conductor_->run(next_, source, [&](uint64_t position, JobOutcome outcome) {
    return commit(position, std::move(outcome), seeds);
  });
  runner_.reset();
  updateSeconds();
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  summary_.interrupted_by = Interrupts::caught();
  // A signal in the middle of a closer look: the case is not counted, nor is what it showed.
  std::erase_if(summary_.failures, [](const FailureGroup& group) { return group.count == 0; });
  done = writeIndex(true);
  if (!done) {
    return tl::make_unexpected(done.error());
  }
  if (options_.progress) {
    options_.progress({summary_, summary_.seconds, true});
  }
  return summary_;
}

void Hunt::updateSeconds() {
  summary_.seconds = seconds_before_ + std::chrono::duration<double>(Clock::now() - begin_).count();
}

Result<void> Hunt::writeIndex(bool sync) {
  json index = summary_.toJson();
  index["state"] = state_;
  index["state"]["next"] = next_;
  Result<void> written = out_.writeIndex(index, sync);
  if (written && (sync || Clock::now() - last_stats_ >= kStatsEvery)) {
    last_stats_ = Clock::now();
    written = out_.appendStats({{"seconds", summary_.seconds},
                                {"cases", summary_.cases},
                                {"passed", summary_.passed},
                                {"failed", summary_.failed},
                                {"flaky", summary_.flaky},
                                {"skipped", summary_.skipped},
                                {"distinct", summary_.failures.size()}});
  }
  return written;
}

std::vector<Hunt::Finding> Hunt::findingsOf(const CaseResult& result, const std::string& text) const {
  std::vector<Finding> findings;
  std::set<std::string> seen;
  std::optional<Result<Case>> parsed;
  for (const Judgement& judgement : result.judgements) {
    if (!judgement.verdict.failed() || !seen.insert(judgement.signature).second) {
      continue;
    }
    // A closer look judges more lanes and oracles than were asked for.
    const auto oracle = summary_.oracles.find(judgement.oracle);
    const bool wanted = oracle != summary_.oracles.end() && oracle->second.count(judgement.lane) != 0;
    if (!wanted && judgement.oracle != kExecution) {
      continue;
    }
    Finding finding{judgement, {}};
    if (!options_.ignore_known) {
      if (!parsed) {
        parsed = readCase(text);
      }
      finding.known = *parsed ? knownIssueOf(judgement.signature, **parsed, torchRelease()) : "";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

FailureGroup* Hunt::groupOf(const Finding& finding) {
  for (FailureGroup& group : summary_.failures) {
    if (group.signature == finding.judgement.signature && group.known == finding.known) {
      return &group;
    }
  }
  return nullptr;
}

Result<bool> Hunt::takesTooLongInEager(const Catch& caught) {
  // A user's program may simply be that long, where a generated one that does not end is a finding.
  if (summary_.command != "check" || !caught.death || caught.death->kind != FailureKind::timeout) {
    return false;
  }
  if (caught.death->record.lane == "reference") {
    return true;
  }
  const Result<std::optional<double>> seconds = referenceSeconds(*conductor_, caught.job, caught.job.text);
  if (!seconds) {
    return tl::make_unexpected(seconds.error());
  }
  return seconds->value_or(0) * kTimesReference > caught.job.timeout;
}

Result<bool> Hunt::recover(Catch& caught) {
  caught.log = caught.death->log;
  Judgement judgement = deathJudgement(*caught.death);
  const auto shown_as = generator_deaths_.find(judgement.signature);
  if (shown_as != generator_deaths_.end()) {
    judgement.signature = shown_as->second;
  }
  caught.result.judgements = {judgement};
  if (groupOf({judgement, {}}) != nullptr && !isSignatureOfKnownIssue(judgement.signature)) {
    return true;  // one more of a kind: it is counted, and its text is not needed
  }
  Result<std::optional<std::string>> text = recoverText(*conductor_, caught.job, caught.death->record);
  if (!text) {
    return tl::make_unexpected(text.error());
  }
  if (!*text) {
    return false;
  }
  caught.text = std::move(**text);
  return true;
}

Result<bool> Hunt::confirmGenerator(Catch& caught, std::set<std::string>& flaky) {
  const std::string signature = deathSignature(*caught.death);
  for (unsigned i = 0; i < kTimesSeen; ++i) {
    Job again = caught.job;
    again.fresh = true;
    again.repeat = 0;
    Result<std::optional<JobOutcome>> outcome = conductor_->await(std::move(again));
    if (!outcome) {
      return tl::make_unexpected(outcome.error());
    }
    if (!*outcome) {
      return false;
    }
    if (!(*outcome)->death || deathSignature(*(*outcome)->death) != signature) {
      flaky.insert(signature);
      return true;
    }
  }
  Result<void> added = add(caught, caught.findings.front(), {});
  return added ? Result<bool>(true) : tl::make_unexpected(added.error());
}

Result<bool> Hunt::confirm(Catch& caught, std::set<std::string>& flaky) {
  const bool died = caught.death.has_value();
  if (died && caught.text.empty()) {
    return confirmGenerator(caught, flaky);
  }
  std::set<std::string> groups;
  for (const Finding& finding : caught.findings) {
    groups.insert(finding.judgement.group);
  }
  std::vector<std::string> lanes = lanesOfGroups(groups);
  for (const std::string& lane : summary_.lanes) {
    if (died && !contains(lanes, lane)) {
      lanes.push_back(lane);
    }
  }
  Job how = caught.job;
  how.judge.oracles.clear();  // the saved case says what all of them say
  Result<std::optional<Assessment>> assessed = assess(*conductor_, how, caught.text, lanes, died);
  if (!assessed) {
    return tl::make_unexpected(assessed.error());
  }
  if (!*assessed) {
    return false;
  }
  const Assessment& assessment = **assessed;
  const std::vector<std::string> always = assessment.always();
  if (died && assessment.repeats.front().failed()) {
    caught.result = assessment.repeats.front();
    caught.findings = findingsOf(caught.result, caught.text);
    caught.log = assessment.log;
  }
  for (const Finding& finding : caught.findings) {
    const std::string& signature = finding.judgement.signature;
    const bool counted_already = !finding.known.empty() || groupOf(finding) != nullptr;
    if (!counted_already && !contains(always, signature)) {
      flaky.insert(signature);
      continue;
    }
    if (!counted_already) {
      Result<void> added = add(caught, finding, assessment);
      if (!added) {
        return tl::make_unexpected(added.error());
      }
    }
    if (died && caught.death->record.stage == FlightStage::Generating &&
        finding.judgement.oracle == kExecution) {
      generator_deaths_[deathSignature(*caught.death)] = signature;
    }
  }
  const bool reproduced =
      std::any_of(caught.findings.begin(), caught.findings.end(), [&](const Finding& finding) {
        return finding.judgement.oracle == kExecution && flaky.count(finding.judgement.signature) == 0;
      });
  if (died && !reproduced && caught.death->record.stage == FlightStage::Generating) {
    // Not the op but the generator around it: then only making the case again shows it.
    flaky.clear();
    caught.result.judgements = {deathJudgement(*caught.death)};
    caught.findings = findingsOf(caught.result, caught.text);
    return confirmGenerator(caught, flaky);
  }
  return true;
}

json Hunt::infoOf(const Catch& caught, const Finding& finding) const {
  json info{{"schema", "faultline.info/1"},
            {"signature", finding.judgement.signature},
            {"oracle", finding.judgement.oracle},
            {"lane", finding.judgement.lane},
            {"detail", finding.judgement.verdict.message()},
            {"torch", summary_.torch},
            {"strict", options_.strict}};
  if (caught.job.generate) {
    info["seed"] = caught.job.generate->seed;
    info["case_index"] = caught.job.generate->index;
  }
  if (!caught.log.empty()) {
    info["log"] = caught.log;
  }
  return info;
}

std::vector<OutDir::File> Hunt::filesOf(const Catch& caught, const Finding& finding,
                                        const std::string& text) const {
  std::vector<OutDir::File> files;
  if (!text.empty()) {
    files.push_back({"case.case", text});
  }
  if (caught.death && caught.job.generate &&
      (text.empty() || caught.death->record.stage == FlightStage::Generating)) {
    files.push_back({kTapeFile, tapeOf(*caught.job.generate, caught.death->record)});
  }
  files.push_back(
      {"info.json", infoOf(caught, finding).dump(1, ' ', false, json::error_handler_t::replace) + "\n"});
  return files;
}

Result<void> Hunt::add(const Catch& caught, const Finding& finding, const Assessment& assessment) {
  const Judgement& judgement = finding.judgement;
  std::string text = caught.text;
  Result<Case> parsed = readCase(text);
  if (parsed) {
    std::set<std::string> groups;
    for (const CaseResult& result : assessment.repeats) {
      for (const Judgement& other : result.judgements) {
        groups.insert(other.group);
      }
    }
    for (const std::string& group : groups) {
      const std::vector<std::string> signatures =
          assessment.always([&](const Judgement& one) { return one.group == group; });
      if (!signatures.empty()) {
        parsed->expectations.push_back({group, torchRelease(), "", false, signatures});
      }
    }
    if (caught.job.generate) {
      parsed->notes["found"] =
          fmt::format("seed {}, case {}", caught.job.generate->seed, caught.job.generate->index);
    }
    text = writeCase(*parsed);
  }
  const std::vector<OutDir::File> files = filesOf(caught, finding, text);
  Result<std::string> saved = out_.save(slugOf(judgement.signature), files);
  if (!saved) {
    return tl::make_unexpected(saved.error());
  }
  FailureGroup group;
  group.signature = judgement.signature;
  group.oracle = judgement.oracle;
  group.lane = judgement.lane;
  group.kind = toString(judgement.verdict.kind());
  group.index = caught.position;
  group.case_path = *saved + "/" + files.front().name;
  group.detail = judgement.verdict.message();
  summary_.failures.push_back(std::move(group));
  return {};
}

Result<void> Hunt::saveFlaky(const Catch& caught, const std::string& signature) {
  if (flaky_saved_[signature]++ >= kFlakySaved) {
    return {};
  }
  Finding finding;
  for (const Finding& candidate : caught.findings) {
    finding = candidate.judgement.signature == signature ? candidate : finding;
  }
  finding.judgement.signature = signature;
  Result<std::string> saved = out_.save(fmt::format("flaky/{}-{}", slugOf(signature), caught.position),
                                        filesOf(caught, finding, caught.text));
  return saved ? Result<void>() : tl::make_unexpected(saved.error());
}

Result<Conductor::Then> Hunt::commit(uint64_t position, JobOutcome outcome, uint64_t seeds) {
  Catch caught;
  caught.position = position;
  caught.job = std::move(outcome.job);
  caught.death = std::move(outcome.death);
  Result<bool> too_long = takesTooLongInEager(caught);
  if (!too_long) {
    return tl::make_unexpected(too_long.error());
  }
  if (*too_long) {
    caught.result.skip = kReferenceTimeout;
  } else if (caught.death) {
    Result<bool> recovered = recover(caught);
    if (!recovered || !*recovered) {
      return recovered ? Result<Conductor::Then>(Conductor::Then::Stop)
                       : tl::make_unexpected(recovered.error());
    }
  } else {
    if (!outcome.report.error.empty() || outcome.report.results.empty()) {
      return fail(ErrorKind::Io, "a worker cannot read the case it was given: " + outcome.report.error);
    }
    caught.result = std::move(outcome.report.results.front());
    caught.text = std::move(outcome.report.text);
  }
  caught.findings = findingsOf(caught.result, caught.text);
  const size_t known_groups = summary_.failures.size();
  std::set<std::string> flaky;
  if (std::any_of(caught.findings.begin(), caught.findings.end(), [&](const Finding& finding) {
        return finding.known.empty() && groupOf(finding) == nullptr;
      })) {
    Result<bool> confirmed = confirm(caught, flaky);
    if (!confirmed || !*confirmed) {
      return confirmed ? Result<Conductor::Then>(Conductor::Then::Stop)
                       : tl::make_unexpected(confirmed.error());
    }
  }
  bool failed = false;
  for (const Finding& finding : caught.findings) {
    if (flaky.count(finding.judgement.signature) != 0) {
      continue;
    }
    FailureGroup* group = groupOf(finding);
    if (group == nullptr) {
      const Judgement& judgement = finding.judgement;
      summary_.failures.push_back({judgement.signature, judgement.oracle, judgement.lane,
                                   toString(judgement.verdict.kind()), "", finding.known, 0, position, "",
                                   judgement.verdict.message()});
      group = &summary_.failures.back();
    }
    ++group->count;
    failed = true;
  }
  for (const std::string& signature : flaky) {
    Result<void> saved = saveFlaky(caught, signature);
    if (!saved) {
      return tl::make_unexpected(saved.error());
    }
  }
  tally(summary_, caught.result);
  if (summary_.reference_error.empty()) summary_.reference_error = caught.result.reference_error;
  for (const std::string& trait : outcome.report.traits) {
    ++summary_.traits[trait];
  }
  ++summary_.cases;
  summary_.seeds += position < seeds ? 1 : 0;
  const std::string skipped = skipReason(caught.result);
  if (failed) {
    ++summary_.failed;
  } else if (!flaky.empty()) {
    ++summary_.flaky;
  } else if (!skipped.empty()) {
    ++summary_.skipped[skipped];
  } else {
    ++summary_.passed;
  }
  next_ = position + 1;
  const uint64_t limit = options_.exit_first ? 1 : options_.max_failures;
  summary_.stopped_early = limit != 0 && summary_.newFailures() >= limit;
  const bool sync = summary_.failures.size() != known_groups || Clock::now() - last_sync_ >= kSyncEvery;
  last_sync_ = sync ? Clock::now() : last_sync_;
  updateSeconds();
  Result<void> written = writeIndex(sync);
  if (!written) {
    return tl::make_unexpected(written.error());
  }
  return summary_.stopped_early ? Conductor::Then::Stop : Conductor::Then::GoOn;
}

}  // namespace faultline
