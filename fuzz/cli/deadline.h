// A program that runs in this process, and not in a worker, may never end.
#pragma once
#include <sys/time.h>

#include <string>

namespace faultline::cli {

// Goes off once, after `seconds`; 0 is never.
itimerval timerOf(double seconds);

// While it lives: after `seconds` the process says `sentence` on stderr and exits with ExitCode::Usage,
// whatever it is doing. One at a time.
class Deadline {
 public:
  Deadline(double seconds, const std::string& sentence);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
};

}  // namespace faultline::cli
