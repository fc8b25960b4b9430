#include "generators/case/file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "generators/text/scanner.h"

namespace faultline {
namespace {

constexpr size_t kMaxMiB = 64;

tl::unexpected<Error> refuse(const std::string& path, ErrorKind kind, std::string message,
                             std::optional<SourceLocation> where = std::nullopt) {
  return tl::make_unexpected(Error{kind, std::move(message), path, where});
}

}  // namespace

Result<std::string> readFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return refuse(path, ErrorKind::Io, "is a folder, expected a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(path, ErrorKind::Io, errno != 0 ? std::strerror(errno) : "cannot be opened");
  std::string bytes;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    bytes.append(block.data(), static_cast<size_t>(file.gcount()));
    if (bytes.size() > kMaxMiB << 20) {
      return refuse(path, ErrorKind::Io, fmt::format("is larger than {} MiB", kMaxMiB));
    }
  }
  if (file.bad()) return refuse(path, ErrorKind::Io, "cannot be read");
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (bytes.starts_with(kByteOrderMark)) bytes.erase(0, kByteOrderMark.size());
  if (bytes.empty()) return refuse(path, ErrorKind::Syntax, "is empty", SourceLocation{1, 1});
  return bytes;
}

Result<std::string> readTextFile(const std::string& path) {
  auto bytes = readFile(path);
  if (!bytes) return bytes;
  for (size_t i = 0; i < bytes->size(); ++i) {
    auto byte = static_cast<unsigned char>((*bytes)[i]);
    if (byte >= 0x20 || byte == '\n' || byte == '\t' || byte == '\r' || byte == '\f') continue;
    return refuse(path, ErrorKind::Syntax,
                  fmt::format("is a binary file: expected text, got byte 0x{:02x}", byte),
                  Scanner(*bytes).where(i));
  }
  return bytes;
}

}  // namespace faultline
