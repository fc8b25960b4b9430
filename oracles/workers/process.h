// A child process that talks in lines: started by exec, its three streams as pipes that are never waited for
// without a deadline.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faultline/error.h"
#include "oracles/workers/system.h"

struct pollfd;

namespace faultline {

class ChildProcess {
 public:
  // `arguments[0]` is the program's path. In a process group of its own (Ctrl-C at the terminal is the
  // parent's business), with default signal dispositions.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments);
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;
  ~ChildProcess();  // kills

  pid_t pid() const { return pid_; }
  void send(std::string_view line);  // queued; goes out when the child reads

  // What to poll for, appended to `fds`, and what came of it. Never blocks.
  void watch(std::vector<pollfd>& fds) const;
  void transfer();
  std::optional<std::string> takeLine();           // the next line of its stdout
  bool closed() const { return closed_; }          // its stdout has ended
  bool flooded() const { return flooded_; }        // a line beyond any sane size
  const std::string& log() const { return log_; }  // the last of its stderr

  // Memory in bytes as the kernel counts it; 0 when it is gone.
  uint64_t residentBytes() const;

  // SIGKILL, then waits; `grace` first lets it die by itself. The status as of waitpid; an Error for a
  // process that does not even die of SIGKILL. Reads the rest of its stderr. Once only.
  Result<int> end(std::chrono::milliseconds grace);

 private:
  ChildProcess() = default;
  bool endsBy(Clock::time_point deadline) const;

  pid_t pid_ = -1;
  UniqueFd in_, out_, err_;
  std::string outgoing_, incoming_, log_;
  bool closed_ = false, flooded_ = false;
};

}  // namespace faultline
