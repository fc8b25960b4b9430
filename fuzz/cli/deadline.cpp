#include "fuzz/cli/deadline.h"

#include <cmath>
#include <csignal>

#include <unistd.h>

#include "fuzz/cli/console.h"
#include "fuzz/cli/exit_code.h"

namespace faultline::cli {
namespace {

std::string deadline_words;

// Only what a signal handler may call.
void onDeadline(int) {
  const ssize_t written = write(STDERR_FILENO, deadline_words.data(), deadline_words.size());
  (void)written;
  _exit(static_cast<int>(ExitCode::Usage));
}

void setAlarm(double seconds) {
  const itimerval timer = timerOf(seconds);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

itimerval timerOf(double seconds) {
  const double whole = std::floor(seconds);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - whole) * 1e6);
  if (seconds > 0 && timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0) timer.it_value.tv_usec = 1;
  return timer;
}

Deadline::Deadline(double seconds, const std::string& sentence) {
  deadline_words = asComplaint(sentence);
  std::signal(SIGALRM, onDeadline);
  setAlarm(seconds);
}

Deadline::~Deadline() {
  setAlarm(0);
  std::signal(SIGALRM, SIG_DFL);
}

}  // namespace faultline::cli
