#include "fuzz/cli/json.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "oracles/campaign/setup.h"

namespace faultline::cli {

std::string version() { return FAULTLINE_VERSION; }

Json jsonHead(std::string_view name) {
  return {{"schema", fmt::format("faultline.{}/1", name)}, {"version", version()}, {"torch", torchVersion()}};
}

Result<void> writeText(const std::string& asked, std::string_view text) {
  std::error_code status;
  // Through a link to the file that it means: renaming would put a file in its place.
  const std::string path = std::filesystem::is_symlink(asked, status)
                               ? std::filesystem::weakly_canonical(asked, status).string()
                               : asked;
  const auto refuse = [&](const std::string& reason) -> Result<void> {
    return fail(ErrorKind::Io, fmt::format("cannot write {}: {}",
                                           path == "-" ? "standard output" : "'" + path + "'", reason));
  };
  if (path.empty()) return {};
  if (path == "-") {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) throw WriteFailure(refuse(std::strerror(errno)).error().message);
    return {};
  }
  // Devices and pipes are written in place: a rename would put a file where they were.
  const bool in_place =
      std::filesystem::exists(path, status) && !std::filesystem::is_regular_file(path, status);
  const std::string target = in_place ? path : fmt::format("{}.tmp{}", path, getpid());
  std::ofstream file(target, std::ios::binary);
  if (!file) return refuse(std::strerror(errno));
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    // A place that can be written to, but not now: no fault of the command line.
    const std::string reason = refuse(std::strerror(errno)).error().message;
    if (!in_place) std::filesystem::remove(target, status);
    throw WriteFailure(reason);
  }
  if (!in_place) std::filesystem::rename(target, path, status);
  return status ? refuse(status.message()) : Result<void>{};
}

Result<void> writeJson(const std::string& path, const Json& value) {
  return writeText(path, value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace faultline::cli
