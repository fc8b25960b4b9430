#include "fuzz/cli/json.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

namespace faultline::cli {

std::string version() { return FAULTLINE_VERSION; }

std::string torchVersion() {
  return fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH);
}

Json jsonHead(std::string_view name) {
  return {{"schema", fmt::format("faultline.{}/1", name)}, {"version", version()}, {"torch", torchVersion()}};
}

Result<void> writeText(const std::string& path, std::string_view text) {
  const auto refuse = [&](const std::string& reason) -> Result<void> {
    return fail(ErrorKind::Io, fmt::format("cannot write '{}': {}", path, reason));
  };
  if (path.empty()) return {};
  if (path == "-") {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return written ? Result<void>{} : refuse(std::strerror(errno));
  }
  // Devices and pipes are written in place: a rename would put a file where they were.
  std::error_code status;
  const bool in_place =
      std::filesystem::exists(path, status) && !std::filesystem::is_regular_file(path, status);
  const std::string target = in_place ? path : fmt::format("{}.tmp{}", path, getpid());
  std::ofstream file(target, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    const std::string reason = std::strerror(errno);
    if (!in_place) std::filesystem::remove(target, status);
    return refuse(reason);
  }
  if (!in_place) std::filesystem::rename(target, path, status);
  return status ? refuse(status.message()) : Result<void>{};
}

Result<void> writeJson(const std::string& path, const Json& value) {
  return writeText(path, value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace faultline::cli
