// Ctrl-C, SIGTERM and SIGHUP as a question that a loop asks.
#pragma once
#include <csignal>

namespace faultline {

// Takes SIGINT, SIGTERM and SIGHUP for its lifetime, and gives them back. A second signal while the first is
// being dealt with ends the program at once.
class Interrupts {
 public:
  // `in_process`: the case at hand cannot be stopped, and whoever interrupts is told so.
  explicit Interrupts(bool in_process = false);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  static int caught();  // the signal's number; 0: none

 private:
  struct sigaction before_int_ {
  }, before_term_{}, before_hup_{};
};

}  // namespace faultline
