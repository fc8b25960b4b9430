#include "fuzz/cli/break_picture.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fuzz/cli/deadline.h"
#include "fuzz/cli/json.h"
#include "fuzz/cli/options.h"

namespace faultline::cli {
namespace {

// Without a name, so that nothing is left of it however the program ends.
using Scratch = std::unique_ptr<FILE, int (*)(FILE*)>;

enum class Drawing { Done, Failed, TooSlow };

// Graphviz, between two files. It dies with this process, and takes no longer than `seconds`.
Drawing runDot(FILE* in, FILE* out, double seconds) {
  const itimerval limit = timerOf(seconds);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    // Only what may be called between fork and exec. The timer stays set across exec, and ends dot.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    std::signal(SIGALRM, SIG_DFL);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
    const int nothing = open("/dev/null", O_WRONLY);
    if (setitimer(ITIMER_REAL, &limit, nullptr) < 0 || dup2(fileno(in), STDIN_FILENO) < 0 ||
        dup2(fileno(out), STDOUT_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0) {
      _exit(1);
    }
    execlp("dot", "dot", "-Tsvg", nullptr);
    _exit(1);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return Drawing::TooSlow;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Drawing::Done : Drawing::Failed;
}

Result<std::string> laidOut(const std::string& dot, double seconds) {
  const Scratch in(std::tmpfile(), std::fclose), out(std::tmpfile(), std::fclose);
  if (!in || !out) {
    return fail(ErrorKind::Io,
                fmt::format("--svg: no temporary file for the picture: {}", std::strerror(errno)));
  }
  const bool fed =
      std::fwrite(dot.data(), 1, dot.size(), in.get()) == dot.size() && std::fflush(in.get()) == 0;
  std::rewind(in.get());
  const Drawing drawing = fed ? runDot(in.get(), out.get(), seconds) : Drawing::Failed;
  if (drawing == Drawing::TooSlow) {
    return fail(ErrorKind::Io, fmt::format("--svg: Graphviz' dot did not end within {:g} s; --case-timeout "
                                           "gives it longer, --dot writes the text without it",
                                           seconds));
  }
  std::string svg;
  std::rewind(out.get());
  char block[1 << 14];
  for (size_t read; (read = std::fread(block, 1, sizeof block, out.get())) > 0;) svg.append(block, read);
  if (drawing == Drawing::Failed || svg.empty()) {
    return fail(ErrorKind::Io, "--svg: Graphviz' dot is missing or failed; --dot writes the text without it");
  }
  return svg;
}

}  // namespace

void addPictures(CLI::App& app, PictureFlags& flags, CLI::Option* exec) {
  addFile(app, "--dot", flags.dot, "write the broken graph as Graphviz text");
  addFile(app, "--svg", flags.svg, "write the broken graph as a picture, a box per piece");
  addFile(app, "--timeline", flags.timeline, "write what happened when, as a Chrome trace; '-' is stdout")
      ->needs(exec);
  addFile(app, "--timeline-svg", flags.timeline_svg,
          "write what happened when as a picture: a lane per piece, hooks between them")
      ->needs(exec);
}

std::string pictureOnStdout(const PictureFlags& flags) {
  for (const std::string* file : {&flags.dot, &flags.svg, &flags.timeline, &flags.timeline_svg}) {
    if (*file == "-") return "-";
  }
  return {};
}

Result<void> checkPictures(const PictureFlags& flags, const std::string& json) {
  std::map<std::string, std::string> taken;
  if (!json.empty()) taken.emplace(json, "--json");
  const std::pair<const char*, const std::string*> files[] = {{"--dot", &flags.dot},
                                                              {"--svg", &flags.svg},
                                                              {"--timeline", &flags.timeline},
                                                              {"--timeline-svg", &flags.timeline_svg}};
  for (const auto& [name, file] : files) {
    if (file->empty()) continue;
    const auto [before, free] = taken.emplace(*file, name);
    if (free) continue;
    return fail(ErrorKind::Invalid, fmt::format("{} {}: {} is taken by {}", name, *file,
                                                *file == "-" ? "stdout" : "that file", before->second));
  }
  return {};
}

Result<void> drawPlan(const PictureFlags& flags, const torch::jit::Graph& graph, const BreakPlan& plan,
                      double seconds) {
  if (flags.dot.empty() && flags.svg.empty()) return {};
  const auto dot = planDot(graph, plan);
  if (!dot) return tl::make_unexpected(dot.error());
  if (auto written = writeText(flags.dot, *dot); !written) return written;
  if (flags.svg.empty()) return {};
  const auto svg = laidOut(*dot, seconds);
  return svg ? writeText(flags.svg, *svg) : tl::make_unexpected(svg.error());
}

Result<void> drawTimeline(const PictureFlags& flags, const Timeline& timeline) {
  if (!flags.timeline.empty()) {
    if (auto written = writeText(flags.timeline, timeline.chromeTrace()); !written) return written;
  }
  return flags.timeline_svg.empty() ? Result<void>() : writeText(flags.timeline_svg, timeline.svg());
}

}  // namespace faultline::cli
