// What the process says to a shell or a CI. In words: fuzz/README.md.
#pragma once

namespace faultline::cli {

enum class ExitCode : int {
  Clean = 0,           // nothing new
  Found = 1,           // a new failure, a stale known issue, a changed verdict, findings under --validate
  Usage = 2,           // usage, or input that cannot be read
  NothingChecked = 3,  // no case at all, or none that any oracle could judge
  Broken = 4,          // faultline itself failed
  HungUp = 129,        // SIGHUP, nothing new
  Interrupted = 130,   // SIGINT, nothing new
  Terminated = 143,    // SIGTERM, nothing new
};

}  // namespace faultline::cli
