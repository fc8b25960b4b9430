#include "oracles/workers/job.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace faultline {

using nlohmann::json;

namespace {

std::optional<FailureKind> kindFromString(std::string_view name) {
#define FAULTLINE_KIND(kind, help) \
  if (name == #kind) {             \
    return FailureKind::kind;      \
  }
#include "oracles/kinds.def"
#undef FAULTLINE_KIND
  return std::nullopt;
}

json judgementToJson(const Judgement& judgement) {
  const Verdict& verdict = judgement.verdict;
  json to{{"oracle", judgement.oracle}, {"lane", judgement.lane}, {"group", judgement.group}};
  switch (verdict.outcome()) {
    case Verdict::Outcome::Pass:
      to["pass"] = verdict.comparisons();
      if (verdict.rounding() != 0) {
        to["rounding"] = verdict.rounding();
      }
      break;
    case Verdict::Outcome::Skip:
      to["skip"] = verdict.reason();
      break;
    case Verdict::Outcome::Fail:
      to["fail"] = toString(verdict.kind());
      to["detail"] = verdict.detail();
      to["message"] = verdict.message();
      to["comparisons"] = verdict.comparisons();
      to["signature"] = judgement.signature;
      break;
  }
  return to;
}

Judgement judgementFromJson(const json& from) {
  Judgement judgement;
  judgement.oracle = from.at("oracle");
  judgement.lane = from.at("lane");
  judgement.group = from.at("group");
  if (from.contains("pass")) {
    const uint64_t comparisons = from.at("pass");
    if (comparisons == 0) {
      throw json::other_error::create(501, "a pass without comparisons", &from);
    }
    judgement.verdict = Verdict::pass(comparisons, from.value("rounding", uint64_t{0}));
  } else if (from.contains("skip")) {
    judgement.verdict = Verdict::skip(from.at("skip"));
  } else {
    const auto kind = kindFromString(from.at("fail").get<std::string>());
    if (!kind) {
      throw json::other_error::create(501, "an unknown kind of failure", &from);
    }
    judgement.verdict =
        Verdict::failure(*kind, from.at("detail"), from.at("message"), from.at("comparisons"));
    judgement.signature = from.at("signature");
  }
  return judgement;
}

json resultToJson(const CaseResult& result) {
  json to{{"judgements", json::array()}, {"seconds", result.lane_seconds}, {"shares", json::array()}};
  for (const ShareTrace& share : result.shares) {
    to["shares"].push_back({share.name, share.hits, share.of});
  }
  if (!result.skip.empty()) {
    to["skip"] = result.skip;
  }
  if (!result.reference_error.empty()) {
    to["reference_error"] = result.reference_error;
  }
  for (const Judgement& judgement : result.judgements) {
    to["judgements"].push_back(judgementToJson(judgement));
  }
  return to;
}

CaseResult resultFromJson(const json& from) {
  CaseResult result;
  result.skip = from.value("skip", "");
  result.reference_error = from.value("reference_error", "");
  for (const json& judgement : from.at("judgements")) {
    result.judgements.push_back(judgementFromJson(judgement));
  }
  result.lane_seconds = from.at("seconds").get<std::vector<std::pair<std::string, double>>>();
  for (const json& share : from.at("shares")) {
    result.shares.push_back({share.at(0), share.at(1), share.at(2)});
  }
  return result;
}

json generateToJson(const GenerateSource& source) {
  const GenerateOptions& options = source.options;
  json to{{"seed", source.seed},
          {"index", source.index},
          {"ops_added", options.ops_added},
          {"ops_removed", options.ops_removed},
          {"features", options.features},
          {"min_nodes", options.min_nodes},
          {"max_nodes", options.max_nodes}};
  if (source.stop_before_op) {
    to["stop_before_op"] = *source.stop_before_op;
  }
  return to;
}

GenerateSource generateFromJson(const json& from) {
  GenerateSource source;
  source.seed = from.at("seed");
  source.index = from.at("index");
  source.options.ops_added = from.at("ops_added").get<std::vector<std::string>>();
  source.options.ops_removed = from.at("ops_removed").get<std::vector<std::string>>();
  source.options.features = from.at("features").get<std::vector<std::string>>();
  source.options.min_nodes = from.at("min_nodes");
  source.options.max_nodes = from.at("max_nodes");
  if (from.contains("stop_before_op")) {
    source.stop_before_op = from.at("stop_before_op").get<uint64_t>();
  }
  return source;
}

// JSON strings are UTF-8, files are not always: each byte travels as the character of its number.
std::string bytesToText(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return text;
}

std::string textToBytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80 || i + 1 == text.size()) {
      bytes += text[i];
    } else {
      bytes += static_cast<char>((byte << 6) | (static_cast<unsigned char>(text[++i]) & 0x3F));
    }
  }
  return bytes;
}

// Messages of libtorch may quote any bytes; for people a replacement character will do.
std::string dumpLine(const json& message) {
  return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

// What nlohmann throws for a missing field or a wrong type is the sender's fault: a value here.
template <class Read>
auto orError(const char* what, Read read) -> Result<decltype(read())> {
  try {
    return read();
  } catch (const json::exception& e) {
    return fail(ErrorKind::Syntax, fmt::format("not a {}: {}", what, e.what()));
  }
}

}  // namespace

std::string toLine(const Job& job) {
  json to{{"id", job.id},
          {"lanes", job.judge.lanes},
          {"oracles", job.judge.oracles},
          {"strict", job.judge.oracle.strict},
          {"confirm", job.judge.confirm_in_other_precision},
          {"repeat", job.repeat},
          {"want_text", job.want_text}};
  if (job.generate) {
    to["generate"] = generateToJson(*job.generate);
  } else {
    to["case"] = bytesToText(job.text);
  }
  return dumpLine(to);
}

Result<Job> jobFromJson(const json& from) {
  return orError("job", [&] {
    Job job;
    job.id = from.at("id");
    job.judge.lanes = from.at("lanes").get<std::vector<std::string>>();
    job.judge.oracles = from.at("oracles").get<std::vector<std::string>>();
    job.judge.oracle.strict = from.at("strict");
    job.judge.confirm_in_other_precision = from.at("confirm");
    job.repeat = from.at("repeat");
    job.want_text = from.at("want_text");
    if (from.contains("generate")) {
      job.generate = generateFromJson(from.at("generate"));
    } else {
      job.text = textToBytes(from.at("case").get<std::string>());
    }
    return job;
  });
}

std::string toLine(uint64_t job_id, const JobReport& report) {
  json to{{"id", job_id}, {"results", json::array()}, {"traits", report.traits}};
  if (!report.error.empty()) {
    to["error"] = report.error;
  }
  if (!report.text.empty()) {
    to["text"] = bytesToText(report.text);
  }
  for (const CaseResult& result : report.results) {
    to["results"].push_back(resultToJson(result));
  }
  return dumpLine(to);
}

Result<JobReport> reportFromJson(const json& from) {
  return orError("report", [&] {
    JobReport report;
    report.error = from.value("error", "");
    report.text = textToBytes(from.value("text", ""));
    report.traits = from.at("traits").get<std::vector<std::string>>();
    for (const json& result : from.at("results")) {
      report.results.push_back(resultFromJson(result));
    }
    return report;
  });
}

}  // namespace faultline
