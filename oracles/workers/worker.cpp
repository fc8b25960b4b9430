#include "oracles/workers/worker.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "oracles/workers/crash_handler.h"
#include "oracles/workers/run_job.h"

namespace faultline {

namespace {

struct Arguments {
  std::string recorder;
  pid_t parent = 0;
  std::vector<std::string> plugins;
};

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "faultline worker: %s\n", why.c_str());
  std::exit(2);
}

Arguments parseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (i == 1 && word == "worker") {
      continue;
    }
    if (i + 1 == argc) {
      refuse("no value behind " + word);
    }
    const std::string value = argv[++i];
    if (word == "--recorder") {
      arguments.recorder = value;
    } else if (word == "--parent") {
      arguments.parent = static_cast<pid_t>(std::strtol(value.c_str(), nullptr, 10));
    } else if (word == "--plugin") {
      arguments.plugins.push_back(value);
    } else {
      refuse("unknown option " + word);
    }
  }
  return arguments;
}

// A worker that outlived its parent would judge for nobody.
void dieWithParent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (parent != 0 && ::getppid() != parent) {
    std::exit(0);
  }
}

// When memory runs out the kernel should take this process rather than the parent, who keeps the results.
void volunteerForOom() {
  if (std::FILE* file = std::fopen("/proc/self/oom_score_adj", "we")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
}

class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}
  std::optional<std::string> next() {
    for (;;) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char chunk[16384];
      const ssize_t got = ::read(fd_, chunk, sizeof(chunk));
      if (got > 0) {
        buffer_.append(chunk, static_cast<size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        return std::nullopt;
      }
    }
  }

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace

int workerMain(int argc, char** argv) {
  const Arguments arguments = parseArguments(argc, argv);
  dieWithParent(arguments.parent);
  volunteerForOom();
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);

  // prim::Print, a library or a case may write to stdout: none of it may reach the parent as an answer.
  const UniqueFd in(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10));
  const UniqueFd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10));
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!in || !out || !nothing || ::dup2(nothing.get(), STDIN_FILENO) < 0 ||
      ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    refuse(fmt::format("cannot set up its streams: {}", std::strerror(errno)));
  }
  at::set_num_threads(1);
  for (const std::string& plugin : arguments.plugins) {
    if (::dlopen(plugin.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      refuse(fmt::format("cannot load plugin: {}", ::dlerror()));
    }
  }
  std::optional<FlightRecorder> recorder;
  if (!arguments.recorder.empty()) {
    Result<FlightRecorder> opened = FlightRecorder::open(arguments.recorder);
    if (!opened) {
      refuse(opened.error().str());
    }
    recorder.emplace(std::move(*opened));
    installCrashHandler(recorder->crash());
  }

  const auto answer = [&](const std::string& line) { return writeAll(out.get(), line + "\n") == 0; };
  LineReader lines(in.get());
  bool heard = answer(nlohmann::json{{"hello", kWorkerProtocol}}.dump());
  while (heard) {
    const std::optional<std::string> line = lines.next();
    if (!line) {
      break;
    }
    const Result<Job> job = jobFromJson(nlohmann::json::parse(*line, nullptr, false));
    if (!job) {
      refuse(job.error().str());
    }
    heard = answer(toLine(job->id, runJob(*job, recorder ? &*recorder : nullptr)));
  }
  return 0;
}

}  // namespace faultline
