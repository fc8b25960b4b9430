// The little of POSIX that workers and --out folders share: descriptors that close themselves, errors as
// values, writes that are complete or an Error.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "faultline/error.h"

namespace faultline {

using Clock = std::chrono::steady_clock;

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }
  void reset();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "FILE: cannot DOING: No space left on device", kind Io.
Error systemError(const std::string& path, std::string_view doing, int code);

// All of `bytes`, across partial writes and EINTR; 0 or the errno.
int writeAll(int fd, std::string_view bytes);

// A regular file of at most `limit` bytes. Refuses (kind Invalid) what is not there, no regular file, or
// larger.
Result<std::string> readWholeFile(const std::string& path, size_t limit);

}  // namespace faultline
