#include "oracles/workers/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fmt/format.h>

extern char** environ;

namespace faultline {

namespace {

constexpr size_t kMaxLine = size_t{128} << 20;
constexpr size_t kMaxLog = size_t{16} << 10;
constexpr auto kDyingTime = std::chrono::seconds(20);

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> makePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    return tl::make_unexpected(systemError("", "make a pipe", errno));
  }
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void setNonBlocking(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

// posix_spawn's two lists, freed whatever happens.
struct SpawnSetup {
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

// Appends what can be read now. False at the end of the stream.
bool drain(const UniqueFd& fd, std::string& to) {
  char buffer[16384];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got > 0) {
      to.append(buffer, static_cast<size_t>(got));
      if (to.size() > kMaxLine) {
        return true;
      }
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      return false;
    } else if (errno == EAGAIN) {
      return true;
    }
  }
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments) {
  Result<Pipe> in = makePipe();
  Result<Pipe> out = makePipe();
  Result<Pipe> err = makePipe();
  for (const Result<Pipe>* pipe : {&in, &out, &err}) {
    if (!*pipe) {
      return tl::make_unexpected(pipe->error());
    }
  }
  SpawnSetup setup;
  ::posix_spawn_file_actions_adddup2(&setup.actions, in->read.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&setup.actions, out->write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&setup.actions, err->write.get(), STDERR_FILENO);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&setup.attributes, &none);
  ::posix_spawnattr_setsigdefault(&setup.attributes, &all);
  ::posix_spawnattr_setpgroup(&setup.attributes, 0);
  ::posix_spawnattr_setflags(&setup.attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  ChildProcess child;
  const int failed =
      ::posix_spawn(&child.pid_, argv[0], &setup.actions, &setup.attributes, argv.data(), environ);
  if (failed != 0) {
    child.pid_ = -1;
    return tl::make_unexpected(systemError(arguments.front(), "start a worker", failed));
  }
  child.in_ = std::move(in->write);
  child.out_ = std::move(out->read);
  child.err_ = std::move(err->read);
  for (const UniqueFd* fd : {&child.in_, &child.out_, &child.err_}) {
    setNonBlocking(*fd);
  }
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  std::swap(outgoing_, other.outgoing_);
  std::swap(incoming_, other.incoming_);
  std::swap(log_, other.log_);
  std::swap(closed_, other.closed_);
  std::swap(flooded_, other.flooded_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    static_cast<void>(end(std::chrono::milliseconds(0)));
  }
}

void ChildProcess::send(std::string_view line) {
  outgoing_ += line;
  outgoing_ += '\n';
}

void ChildProcess::watch(std::vector<pollfd>& fds) const {
  if (!outgoing_.empty()) {
    fds.push_back({in_.get(), POLLOUT, 0});
  }
  if (!closed_) {
    fds.push_back({out_.get(), POLLIN, 0});
  }
  if (err_) {
    fds.push_back({err_.get(), POLLIN, 0});
  }
}

void ChildProcess::transfer() {
  while (!outgoing_.empty()) {
    const ssize_t written = ::write(in_.get(), outgoing_.data(), outgoing_.size());
    if (written > 0) {
      outgoing_.erase(0, static_cast<size_t>(written));
    } else if (errno != EINTR) {
      if (errno != EAGAIN) {
        outgoing_.clear();  // it does not read any more: its stdout will say the rest
      }
      break;
    }
  }
  closed_ = closed_ || !drain(out_, incoming_);
  flooded_ = flooded_ || incoming_.size() > kMaxLine;
  if (err_ && !drain(err_, log_)) {
    err_.reset();
  }
  if (log_.size() > kMaxLog) {
    log_.erase(0, log_.size() - kMaxLog);
  }
}

std::optional<std::string> ChildProcess::takeLine() {
  const size_t end = incoming_.find('\n');
  if (end == std::string::npos) {
    return std::nullopt;
  }
  std::string line = incoming_.substr(0, end);
  incoming_.erase(0, end + 1);
  return line;
}

uint64_t ChildProcess::residentBytes() const {
  std::FILE* file = std::fopen(fmt::format("/proc/{}/statm", pid_).c_str(), "re");
  if (file == nullptr) {
    return 0;
  }
  unsigned long long size = 0, resident = 0;
  const int fields = std::fscanf(file, "%llu %llu", &size, &resident);
  std::fclose(file);
  return fields == 2 ? resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

bool ChildProcess::endsBy(Clock::time_point deadline) const {
  for (;;) {
    siginfo_t info{};
    // WNOWAIT: the pid stays taken, so that its process group can still be named.
    const int looked = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    if ((looked == 0 && info.si_pid == pid_) || (looked != 0 && errno != EINTR)) {
      return true;
    }
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<int> ChildProcess::end(std::chrono::milliseconds grace) {
  if (grace.count() > 0) {
    static_cast<void>(endsBy(Clock::now() + grace));
  }
  // The whole group: a case may have started processes.
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  const bool ended = endsBy(Clock::now() + kDyingTime);
  const pid_t pid = std::exchange(pid_, -1);
  if (!ended) {
    return fail(ErrorKind::Io, fmt::format("worker {} does not die of SIGKILL", pid));
  }
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) {
    status = 0;  // somebody else took it: the process is gone in any case
  }
  transfer();
  return status;
}

}  // namespace faultline
