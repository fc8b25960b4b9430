#include "fuzz/cli/json.h"

#include <fcntl.h>

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

namespace {

struct Target {
  std::string path;  // through a link to the file that it means: renaming would put a file in its place
  std::string temporary;
  bool in_place = false;  // a device or a pipe: a rename would put a file where it was
};

Target targetOf(const std::string& asked) {
  std::error_code status;
  Target target;
  target.path = std::filesystem::is_symlink(asked, status)
                    ? std::filesystem::weakly_canonical(asked, status).string()
                    : asked;
  target.in_place =
      std::filesystem::exists(target.path, status) && !std::filesystem::is_regular_file(target.path, status);
  target.temporary = target.in_place ? target.path : fmt::format("{}.tmp{}", target.path, getpid());
  return target;
}

tl::unexpected<Error> refuseToWrite(const std::string& path, const std::string& reason) {
  return fail(ErrorKind::Io,
              fmt::format("cannot write {}: {}", path == "-" ? "standard output" : "'" + path + "'", reason));
}

}  // namespace

Result<void> checkWritable(const std::string& asked) {
  if (asked.empty() || asked == "-") return {};
  const Target target = targetOf(asked);
  std::error_code status;
  if (std::filesystem::is_directory(target.path, status)) {
    return refuseToWrite(target.path, std::strerror(EISDIR));
  }
  // Opening a pipe would wait for its reader.
  if (target.in_place) return {};
  const int file = open(target.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return refuseToWrite(target.path, std::strerror(errno));
  close(file);
  unlink(target.temporary.c_str());
  return {};
}

Result<void> writeText(const std::string& asked, std::string_view text) {
  const Target target = targetOf(asked);
  const std::string& path = target.path;
  std::error_code status;
  const auto refuse = [&](const std::string& reason) -> Result<void> { return refuseToWrite(path, reason); };
  if (path.empty()) return {};
  if (path == "-") {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) throw WriteFailure(refuse(std::strerror(errno)).error().message);
    return {};
  }
  std::ofstream file(target.temporary, std::ios::binary);
  if (!file) return refuse(std::strerror(errno));
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    // A place that can be written to, but not now: no fault of the command line.
    const std::string reason = refuse(std::strerror(errno)).error().message;
    if (!target.in_place) std::filesystem::remove(target.temporary, status);
    throw WriteFailure(reason);
  }
  if (!target.in_place) std::filesystem::rename(target.temporary, path, status);
  return status ? refuse(status.message()) : Result<void>{};
}

Result<void> writeJson(const std::string& path, const Json& value) {
  return writeText(path, value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace faultline::cli
