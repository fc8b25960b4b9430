#include "oracles/campaign/interrupts.h"

#include <string_view>

#include <unistd.h>

namespace faultline {

namespace {
volatile std::sig_atomic_t caught_signal = 0;
volatile std::sig_atomic_t says_when = 0;

// Only what a signal handler may call.
void onSignal(int number) {
  caught_signal = number;
  constexpr std::string_view kWhen =
      "faultline: it ends when this case is done; a second signal ends it at once\n";
  if (says_when != 0 && write(STDERR_FILENO, kWhen.data(), kWhen.size()) < 0) return;
}
}  // namespace

Interrupts::Interrupts(bool in_process) {
  says_when = in_process ? 1 : 0;
  caught_signal = 0;
  struct sigaction action {};
  action.sa_handler = onSignal;
  sigemptyset(&action.sa_mask);
  // RESETHAND: the second signal has its default effect. No SA_RESTART: a waiting poll must notice the first.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
  sigaction(SIGHUP, &action, &before_hup_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
  sigaction(SIGHUP, &before_hup_, nullptr);
  caught_signal = 0;
}

int Interrupts::caught() { return caught_signal; }

}  // namespace faultline
