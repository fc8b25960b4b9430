#include "oracles/workers/crash_handler.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "engine/support/check.h"
#include "engine/support/sanitized.h"

namespace faultline {

namespace {

[[maybe_unused]] constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
[[maybe_unused]] CrashNote* crash_note = nullptr;
[[maybe_unused]] std::atomic<pid_t> crashing_thread{0};
// A stack that overflowed cannot carry the handler.
[[maybe_unused]] alignas(16) char handler_stack[size_t{64} << 10];

template <size_t N>
void putWord(char (&to)[N], const char* word) {
  const size_t size = std::min(std::strlen(word), N - 1);
  std::memcpy(to, word, size);
  to[size] = 0;
}

[[maybe_unused]] void onFatalSignal(int number) {
  CrashNote& note = *crash_note;
  const pid_t self = ::gettid();
  pid_t none = 0;
  if (!crashing_thread.compare_exchange_strong(none, self)) {
    if (none == self) {
      ::_exit(128 + number);  // the handler itself crashed
    }
    for (;;) {
      ::pause();  // another thread is at it, and ends the process
    }
  }
  note.signal.store(number);
  // Walking a broken stack or a lock held by the loader may hang: then the alarm ends the process.
  ::signal(SIGALRM, SIG_DFL);
  ::alarm(3);
  void* addresses[CrashNote::kFrames + 8];
  const int count = ::backtrace(addresses, static_cast<int>(std::size(addresses)));
  // Behind the handler's own frames comes the one that the kernel made for it, in libc and without a name.
  int first = 0;
  Dl_info info{};
  while (first < count && ::dladdr(addresses[first], &info) != 0 &&
         std::strstr(info.dli_fname, "/libc.so") == nullptr) {
    ++first;
  }
  for (int i = std::min(first + 1, count); i < count; ++i) {
    const uint32_t at = note.frames.load(std::memory_order_relaxed);
    if (at == CrashNote::kFrames || ::dladdr(addresses[i], &info) == 0) {
      break;
    }
    CrashNote::Frame& frame = note.frame[at];
    const char* slash = std::strrchr(info.dli_fname, '/');
    putWord(frame.module, slash != nullptr ? slash + 1 : info.dli_fname);
    putWord(frame.symbol, info.dli_sname != nullptr ? info.dli_sname : "");
    frame.offset =
        static_cast<uint64_t>(static_cast<char*>(addresses[i]) - static_cast<char*>(info.dli_fbase));
    note.frames.store(at + 1, std::memory_order_release);
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// Libraries below ours and libtorch's: where a bad argument blows up, not where it came from.
bool isSystemModule(std::string_view module) {
  for (const std::string_view name : {"libc.so", "libm.so", "libstdc++", "libgcc_s", "libpthread", "ld-linux",
                                      "linux-vdso", "libgomp", "libasan", "libdl.so"}) {
    if (module.substr(0, name.size()) == name) {
      return true;
    }
  }
  return false;
}

std::string demangle(const std::string& symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string text = status == 0 ? demangled : symbol;
  std::free(demangled);
  return text;
}

}  // namespace

void installCrashHandler(CrashNote& note) {
#if defined(FAULTLINE_SANITIZED)
  static_cast<void>(note);
#else
  crash_note = &note;
  // The first call loads libgcc, which a signal handler must not do.
  void* warm_up[2];
  static_cast<void>(::backtrace(warm_up, 2));
  stack_t stack{};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof(handler_stack);
  FAULTLINE_CHECK(::sigaltstack(&stack, nullptr) == 0, std::string("sigaltstack"));
  struct sigaction action {};
  action.sa_handler = onFatalSignal;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (const int number : kFatal) {
    FAULTLINE_CHECK(::sigaction(number, &action, nullptr) == 0, std::string("sigaction"));
  }
#endif
}

std::string wordOf(std::string_view text, size_t limit) {
  std::string word;
  for (const char c : text) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr(":._-", c) != nullptr;
    if (fits) {
      word += c;
    } else if (!word.empty() && word.back() != '_') {
      word += '_';
    }
  }
  word.resize(std::min(word.size(), limit));
  return word;
}

std::string functionName(std::string text) {
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at = text.find(anonymous); at != std::string::npos; at = text.find(anonymous)) {
    text.erase(at, anonymous.size());
  }
  std::string name;
  int depth = 0;
  for (const char c : text) {
    if (c == '(' && depth == 0) {
      break;
    }
    depth += c == '<' ? 1 : 0;
    if (depth == 0) {
      name += c;
    }
    depth -= c == '>' ? 1 : 0;
  }
  // A function template's name is preceded by its return type.
  return wordOf(name.substr(name.rfind(' ') + 1), 96);
}

std::string describeCrash(int signal, const std::vector<FlightRecord::Frame>& frames) {
  const char* abbreviation = ::sigabbrev_np(signal);
  const std::string name =
      abbreviation != nullptr ? fmt::format("SIG{}", abbreviation) : fmt::format("signal_{}", signal);
  for (const FlightRecord::Frame& frame : frames) {
    if (frame.symbol.empty() || isSystemModule(frame.module)) {
      continue;
    }
    const std::string function = functionName(demangle(frame.symbol));
    // Says only that an invariant broke; whose it is says the frame above.
    if (!function.empty() && function != "faultline::detail::checkFailed") {
      return fmt::format("{}:{}", name, function);
    }
  }
  return name;
}

}  // namespace faultline
