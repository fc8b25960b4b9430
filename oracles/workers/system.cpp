#include "oracles/workers/system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace faultline {

void UniqueFd::reset() {
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
  }
}

Error systemError(const std::string& path, std::string_view doing, int code) {
  return Error{ErrorKind::Io, fmt::format("cannot {}: {}", doing, std::strerror(code)), path, std::nullopt};
}

int writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  return 0;
}

Result<std::string> readWholeFile(const std::string& path, size_t limit) {
  const auto refuse = [&](std::string message, std::optional<SourceLocation> where = std::nullopt) {
    return tl::make_unexpected(Error{ErrorKind::Invalid, std::move(message), path, where});
  };
  struct stat info {};
  // Looked at before it is opened: opening a FIFO would wait for its writer.
  if (::stat(path.c_str(), &info) != 0) {
    return refuse(fmt::format("cannot read: {}", std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    return refuse("not a regular file");
  }
  if (static_cast<uint64_t>(info.st_size) > limit) {
    return refuse(fmt::format("{} bytes; at most {} are read", info.st_size, limit), SourceLocation{1, 1});
  }
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return refuse(fmt::format("cannot read: {}", std::strerror(errno)));
  }
  std::string bytes(static_cast<size_t>(info.st_size), 0);
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno != EINTR) {
      return refuse(fmt::format("cannot read: {}", std::strerror(errno)));
    }
    if (got == 0) {
      break;
    }
    size += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace faultline
