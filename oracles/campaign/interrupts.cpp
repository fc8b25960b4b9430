#include "oracles/campaign/interrupts.h"

namespace faultline {

namespace {
volatile std::sig_atomic_t caught_signal = 0;
void onSignal(int number) { caught_signal = number; }
}  // namespace

Interrupts::Interrupts() {
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
