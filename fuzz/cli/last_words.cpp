#include "fuzz/cli/last_words.h"

#include <csignal>
#include <cstring>

#include <unistd.h>

#include "engine/support/sanitized.h"
#include "fuzz/cli/console.h"

namespace faultline::cli {

#ifndef FAULTLINE_SANITIZED
namespace {

std::string last_words;

const char* nameOf(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

// Only what a signal handler may call.
void say(const char* text, size_t size) {
  if (write(STDERR_FILENO, text, size) < 0) return;
}

void onFatalSignal(int signal) {
  constexpr std::string_view kWhat = "faultline: the program died inside PyTorch: ";
  say(kWhat.data(), kWhat.size());
  say(nameOf(signal), std::strlen(nameOf(signal)));
  say(last_words.data(), last_words.size());
  // SA_RESETHAND: this one ends the process.
  raise(signal);
}

}  // namespace

void leaveLastWords(const std::string& advice) {
  last_words = asComplaint(".\n  " + advice);
  // A stack that has overflown holds no handler.
  static char stack[1 << 16];
  const stack_t alternative{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = onFatalSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
}
#else
void leaveLastWords(const std::string&) {}
#endif

}  // namespace faultline::cli
