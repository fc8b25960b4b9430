#include "oracles/workers/run_job.h"

#include "generators/case/case.h"

namespace faultline {

namespace {

struct StoppedBefore {
  Case with_op;
};

Case generate(const Job& job, FlightRecorder* recorder) {
  const GenerateSource& source = *job.generate;
  GenerateOptions options = source.options;
  uint64_t ordinal = 0;
  options.before_op = [&](const PendingOp& pending) {
    if (recorder != nullptr) {
      recorder->pendingOp(pending.op, ordinal, pending.tape.choices);
    }
    if (source.stop_before_op == ordinal) {
      throw StoppedBefore{pending.case_with_op()};
    }
    ++ordinal;
  };
  if (recorder != nullptr) {
    recorder->beginGenerating(job.id);
  }
  const uint64_t seed = caseSeed(source.seed, source.index);
  Choices choices = Choices::fromSeed(seed);
  return generateCase(choices, seed, options);
}

}  // namespace

JobReport runJob(const Job& job, FlightRecorder* recorder) {
  JobReport report;
  Case c;
  if (job.generate) {
    try {
      c = generate(job, recorder);
    } catch (StoppedBefore& stopped) {
      report.text = writeCase(stopped.with_op);
      return report;
    }
    report.text = writeCase(c);
  } else {
    report.text = job.text;
  }
  if (recorder != nullptr) {
    recorder->beginJudging(job.id, report.text);
  }
  if (!job.generate) {
    Result<Case> read = readCase(report.text);
    if (!read) {
      report.error = read.error().str();
      return report;
    }
    c = std::move(*read);
  }
  const std::set<std::string> traits = caseTraits(c);
  report.traits.assign(traits.begin(), traits.end());
  JudgeOptions options = job.judge;
  if (recorder != nullptr) {
    options.step = [&](const std::string& lane, int run, const std::string& phase) {
      recorder->step(lane, run, phase);
    };
  }
  bool failed = false;
  for (unsigned i = 0; i < job.repeat; ++i) {
    report.results.push_back(judgeCase(c, options));
    failed = failed || report.results.back().failed();
  }
  if (!failed && !job.want_text) {
    report.text.clear();
  }
  if (recorder != nullptr) {
    recorder->idle();
  }
  return report;
}

}  // namespace faultline
