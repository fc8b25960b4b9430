#include "oracles/workers/death.h"

#include <signal.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include "oracles/workers/crash_handler.h"

namespace faultline {

namespace {

// "SUMMARY: AddressSanitizer: heap-use-after-free FILE:LINE:COLUMN in FUNCTION" →
// "heap-use-after-free:FUNCTION"
std::string sanitizerDetail(const std::string& log) {
  const size_t summary = log.rfind("SUMMARY: ");
  if (summary == std::string::npos) {
    return {};
  }
  const std::string line = log.substr(summary, log.find('\n', summary) - summary);
  const size_t name = line.find("Sanitizer: ");
  if (name == std::string::npos) {
    return {};
  }
  const std::string rest = line.substr(name + std::string("Sanitizer: ").size());
  std::string detail = wordOf(rest.substr(0, rest.find(' ')), 40);
  const size_t in = rest.find(" in ");
  if (in != std::string::npos) {
    detail += ":" + functionName(rest.substr(in + 4));
  }
  return detail;
}

std::string lastLine(const std::string& log) {
  const size_t end = log.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) {
    return {};
  }
  const size_t begin = log.rfind('\n', end);
  return log.substr(begin == std::string::npos ? 0 : begin + 1,
                    end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

std::string whereItWas(const FlightRecord& record) {
  switch (record.stage) {
    case FlightStage::Generating:
      return fmt::format("while the case was generated, at op {} ({})", record.op_ordinal + 1, record.op);
    case FlightStage::Judging:
      return record.lane.empty()
                 ? "before the first lane"
                 : fmt::format("in lane {}, run {}, {}", record.lane, record.run + 1, record.phase);
    case FlightStage::Idle:
      break;
  }
  return "between cases";
}

}  // namespace

Death describeDeath(EndReason reason, int status, FlightRecord record, std::string log) {
  Death death;
  std::string how;
  const std::string sanitizer = sanitizerDetail(log);
  if (reason == EndReason::Deadline) {
    death.kind = FailureKind::timeout;
    how = "the deadline passed";
  } else if (reason == EndReason::Memory) {
    death.kind = FailureKind::oom;
    how = "the memory limit was passed";
  } else if (reason == EndReason::Protocol) {
    death.detail = "protocol";
    how = "the worker's answer is no answer";
  } else if (!sanitizer.empty()) {
    death.kind = FailureKind::sanitizer;
    death.detail = sanitizer;
    how = "a sanitizer stopped it: " + sanitizer;
  } else if (record.signal != 0 || (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)) {
    death.detail = describeCrash(record.signal != 0 ? record.signal : WTERMSIG(status), record.frames);
    how = "the process died: " + death.detail;
  } else if (WIFSIGNALED(status)) {
    // Nobody but the kernel, out of memory, is known to kill workers; three repeats tell it from an accident.
    death.kind = FailureKind::oom;
    how = "the process was killed (SIGKILL), perhaps out of memory,";
  } else {
    death.detail = fmt::format("exit_{}", WEXITSTATUS(status));
    how = fmt::format("the process ended itself with exit code {}", WEXITSTATUS(status));
  }
  death.message = fmt::format("{} {}", how, whereItWas(record));
  const std::string last = lastLine(log);
  if (!last.empty() && death.kind != FailureKind::timeout) {
    death.message += fmt::format("; it said last: {}", last.substr(0, 400));
  }
  death.log = std::move(log);
  death.record = std::move(record);
  return death;
}

}  // namespace faultline
