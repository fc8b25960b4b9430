// What a worker is asked and what it answers: plain data and its JSON lines. Verdicts travel, tensors never
// do.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "faultline/error.h"
#include "generators/generate/generate.h"
#include "oracles/judge.h"

namespace faultline {

struct GenerateSource {
  uint64_t seed = 0, index = 0;
  GenerateOptions options;  // `before_op` does not travel
  // Stop before the op of this ordinal is executed, and answer with the case that has its node; nothing is
  // judged.
  std::optional<uint64_t> stop_before_op;
};

struct Job {
  uint64_t id = 0;                         // given by the runner
  std::optional<GenerateSource> generate;  // or …
  std::string text;                        // … a case file's text
  JudgeOptions judge;                      // `step` does not travel
  unsigned repeat = 1;                     // judged that often; 0: only made or read
  bool want_text = false;                  // answer with the text even when nothing failed

  double timeout = 30;  // seconds; the rest is the runner's business and does not travel
  bool fresh = false;   // in a process of its own
};

struct JobReport {
  std::string error;                // the text could not be read as a case
  std::vector<CaseResult> results;  // one per repetition
  std::string text;                 // of the case, when something failed or it was wanted
  std::vector<std::string> traits;
};

constexpr uint64_t kWorkerProtocol = 1;  // what a worker says hello with

// One line each, without the newline. A case's text may hold any bytes: they arrive as they were.
std::string toLine(const Job& job);
std::string toLine(uint64_t job_id, const JobReport& report);
Result<Job> jobFromJson(const nlohmann::json& json);
Result<JobReport> reportFromJson(const nlohmann::json& json);

}  // namespace faultline
