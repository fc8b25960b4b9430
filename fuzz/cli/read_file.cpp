#include "fuzz/cli/read_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace faultline::cli {

Error inFile(Error error, const std::string& path) {
  error.file = path;
  return error;
}

Result<std::string> readFile(const std::string& path) {
  constexpr size_t kMostMiB = 64;
  const auto refuse = [&](const std::string& reason) -> Result<std::string> {
    Error error;
    error.kind = ErrorKind::Io;
    error.message = reason;
    error.file = path;
    return tl::make_unexpected(error);
  };
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) return refuse("is a folder, expected a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(std::strerror(errno));
  std::string bytes;
  char block[1 << 16];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    bytes.append(block, static_cast<size_t>(file.gcount()));
    if (bytes.size() > kMostMiB << 20) return refuse(fmt::format("is larger than {} MiB", kMostMiB));
  }
  return bytes;
}

}  // namespace faultline::cli
