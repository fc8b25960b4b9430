#include "oracles/workers/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <gtest/gtest.h>

namespace faultline {
namespace {

using std::chrono::milliseconds;

// Moves bytes until `done`, or fails the test after a minute.
template <class Done>
void pump(ChildProcess& child, Done done) {
  const Clock::time_point deadline = Clock::now() + std::chrono::minutes(1);
  while (!done()) {
    ASSERT_LT(Clock::now(), deadline);
    std::vector<pollfd> fds;
    child.watch(fds);
    ::poll(fds.data(), fds.size(), 100);
    child.transfer();
  }
}

ChildProcess shell(const std::string& script) {
  return ChildProcess::start({"/bin/sh", "-c", script}).value();
}

TEST(ChildProcess, TalksInLines) {
  ChildProcess child = ChildProcess::start({"/bin/cat"}).value();
  child.send("one");
  child.send("two");
  std::vector<std::string> lines;
  pump(child, [&] {
    while (auto line = child.takeLine()) {
      lines.push_back(*line);
    }
    return lines.size() == 2;
  });
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
  EXPECT_FALSE(child.closed());
  EXPECT_GT(child.residentBytes(), 100000U);
}

// More than both pipes hold: a parent that wrote it in one go would wait for ever.
TEST(ChildProcess, TakesLinesLargerThanAPipe) {
  ChildProcess child = ChildProcess::start({"/bin/cat"}).value();
  const std::string large(3000000, 'x');
  child.send(large);
  std::optional<std::string> line;
  pump(child, [&] {
    line = child.takeLine();
    return line.has_value();
  });
  EXPECT_EQ(*line, large);
}

TEST(ChildProcess, KeepsTheLastOfItsStderr) {
  ChildProcess child =
      shell("i=0; while [ $i -lt 5000 ]; do echo filler-filler-filler $i >&2; i=$((i+1)); done; exit 3");
  pump(child, [&] { return child.closed(); });
  const int status = child.end(std::chrono::seconds(60)).value();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_LE(child.log().size(), 20000U);
  EXPECT_NE(child.log().find("filler 4999"), std::string::npos);
}

TEST(ChildProcess, SaysWhyItCannotStart) {
  const Error error = ChildProcess::start({"/nonexistent/worker"}).error();
  EXPECT_EQ(error.kind, ErrorKind::Io);
  EXPECT_EQ(error.str(), "/nonexistent/worker: cannot start a worker: No such file or directory");
  EXPECT_EQ(ChildProcess::start({"/etc/passwd"}).error().kind, ErrorKind::Io);
}

TEST(ChildProcess, LeavesNoZombieAndNoGrandchild) {
  pid_t pid = 0, grandchild = 0;
  {
    ChildProcess child = shell("sleep 600 & echo $!; wait");
    pid = child.pid();
    std::optional<std::string> line;
    pump(child, [&] {
      line = child.takeLine();
      return line.has_value();
    });
    grandchild = static_cast<pid_t>(std::stol(*line));
    ASSERT_EQ(::kill(grandchild, 0), 0);
  }
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  // Killed, and reaped by whoever inherits it.
  const Clock::time_point deadline = Clock::now() + std::chrono::minutes(1);
  while (::kill(grandchild, 0) == 0 && Clock::now() < deadline) {
    std::string state;
    if (std::FILE* file = std::fopen(("/proc/" + std::to_string(grandchild) + "/stat").c_str(), "r")) {
      char buffer[256] = {};
      state = std::fgets(buffer, sizeof(buffer), file) != nullptr ? buffer : "";
      std::fclose(file);
    }
    if (state.find(") Z") != std::string::npos) {
      break;
    }
    ::usleep(1000);
  }
  EXPECT_LT(Clock::now(), deadline);
}

TEST(ChildProcess, DiesAtOnceWhenItHangs) {
  ChildProcess child = shell("trap '' TERM INT HUP; while :; do :; done");
  const int status = child.end(milliseconds(0)).value();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(ChildProcess, WritingToADeadOneIsNoAccident) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  ChildProcess child = shell("exit 0");
  child.send(std::string(100000, 'x'));
  pump(child, [&] { return child.closed(); });
  child.send("more");
  child.transfer();
  EXPECT_EQ(child.end(std::chrono::seconds(60)).value(), 0);
  ::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace faultline
