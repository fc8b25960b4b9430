#include "oracles/campaign/out_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "oracles/workers/crash_handler.h"

namespace faultline {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr size_t kMaxIndex = size_t{256} << 20;

tl::unexpected<Error> refuse(const std::string& path, std::string message) {
  return tl::make_unexpected(Error{ErrorKind::Invalid, std::move(message), path, std::nullopt});
}

tl::unexpected<Error> broke(const std::string& path, const char* doing, int code) {
  return tl::make_unexpected(systemError(path, doing, code));
}

Result<void> makeFolder(const std::string& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) {
    return broke(path, "make the folder", code.value());
  }
  return {};
}

Result<void> writeFile(const std::string& path, std::string_view bytes, bool sync) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) {
    return broke(path, "write", errno);
  }
  int failed = writeAll(fd.get(), bytes);
  if (failed == 0 && sync && ::fsync(fd.get()) != 0) {
    failed = errno;
  }
  if (failed != 0) {
    ::unlink(path.c_str());
    return broke(path, "write", failed);
  }
  return {};
}

Result<void> syncFolder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    return broke(path, "sync the folder", errno);
  }
  return {};
}

Result<void> move(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return broke(to, "rename to", errno);
  }
  return {};
}

// A line that a full disk cut is taken back.
Result<void> dropCutLine(const std::string& path) {
  std::error_code code;
  if (!fs::exists(path, code)) {
    return {};
  }
  Result<std::string> bytes = readWholeFile(path, kMaxIndex);
  if (!bytes) {
    return tl::make_unexpected(bytes.error());
  }
  const size_t end = bytes->rfind('\n');
  const size_t whole = end == std::string::npos ? 0 : end + 1;
  if (whole != bytes->size() && ::truncate(path.c_str(), static_cast<off_t>(whole)) != 0) {
    return broke(path, "truncate", errno);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<OutDir>> OutDir::open(const std::string& path, bool resume) {
  std::unique_ptr<OutDir> dir;
  if (path.empty()) {
    std::error_code code;
    const std::string parent = fs::temp_directory_path(code).string();
    if (code) {
      const char* asked = std::getenv("TMPDIR");
      return broke(asked != nullptr ? asked : "/tmp", "make a temporary folder in TMPDIR", code.value());
    }
    std::string pattern = parent + "/faultline-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) return broke(pattern, "make a temporary folder", errno);
    dir.reset(new OutDir(pattern, true));
  } else {
    std::error_code code;
    if (fs::exists(path, code) && !fs::is_directory(path, code)) {
      return refuse(path, "not a folder");
    }
    if (!resume && fs::is_directory(path, code) && !fs::is_empty(path, code)) {
      return refuse(path, "the folder is not empty: give another one (fuzz goes on in it with --resume)");
    }
    dir.reset(new OutDir(path, false));
  }
  Result<void> prepared = dir->prepare(resume);
  if (!prepared) {
    return tl::make_unexpected(prepared.error());
  }
  return dir;
}

Result<void> OutDir::prepare(bool resume) {
  std::error_code code;
  const std::string index = path_ + "/index.json";
  const bool begun = fs::exists(index, code);
  if (resume && !begun && fs::is_directory(path_, code)) {
    // Killed before its first index: then nothing but the folder of unfinished things is there.
    for (const fs::directory_entry& entry : fs::directory_iterator(path_, code)) {
      if (entry.path().filename() != "inflight") {
        return refuse(path_, "nothing to resume: no index.json of an earlier fuzz");
      }
    }
  }
  // Where none can be made, the word on the command line is at fault, not the disk.
  fs::create_directories(inflight(), code);
  if (code == std::errc::no_space_on_device) {
    return broke(path_, "make the folder", code.value());
  }
  if (code) {
    return refuse(path_, "cannot make the folder: " + code.message());
  }
  const std::string lock = inflight() + "/lock";
  lock_ = UniqueFd(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock_) {
    return broke(lock, "make the lock", errno);
  }
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return refuse(path_, "another faultline is working in this folder");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(inflight(), code)) {
    if (entry.path().filename() != "lock") {
      fs::remove_all(entry.path(), code);
    }
  }
  if (begun) {
    Result<std::string> bytes = readWholeFile(index, kMaxIndex);
    if (!bytes) {
      return tl::make_unexpected(bytes.error());
    }
    json parsed = json::parse(*bytes, nullptr, false);
    if (!parsed.is_object()) {
      return refuse(index, "not JSON");
    }
    index_ = std::move(parsed);
  }
  return dropCutLine(path_ + "/stats.jsonl");
}

OutDir::~OutDir() {
  std::error_code ignored;
  if (temporary_ && !saved_) {
    fs::remove_all(path_, ignored);
  } else if (temporary_) {
    fs::remove_all(inflight(), ignored);
  }
}

Result<void> OutDir::writeIndex(const json& index, bool sync) {
  const std::string draft = inflight() + "/index.json";
  Result<void> written =
      writeFile(draft, index.dump(1, ' ', false, json::error_handler_t::replace) + "\n", sync);
  if (written) {
    written = move(draft, path_ + "/index.json");
  }
  return written && sync ? syncFolder(path_) : written;
}

Result<void> OutDir::appendStats(const json& line) {
  const std::string path = path_ + "/stats.jsonl";
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) {
    return broke(path, "write", errno);
  }
  const off_t before = ::lseek(fd.get(), 0, SEEK_END);
  const int failed = writeAll(fd.get(), line.dump() + "\n");
  if (failed != 0) {
    static_cast<void>(::ftruncate(fd.get(), before) == 0);
    return broke(path, "write", failed);
  }
  return {};
}

Result<std::string> OutDir::save(const std::string& name, const std::vector<File>& files) {
  const std::string final_path = path_ + "/" + name;
  const std::string draft = inflight() + "/draft";
  const std::string old = inflight() + "/old";
  std::error_code code;
  fs::remove_all(draft, code);
  fs::remove_all(old, code);
  Result<void> done = makeFolder(draft);
  for (const File& file : files) {
    done = done ? writeFile(draft + "/" + file.name, file.bytes, true) : done;
  }
  done = done ? syncFolder(draft) : done;
  done = done ? makeFolder(fs::path(final_path).parent_path().string()) : done;
  if (done && fs::exists(final_path, code)) {
    done = move(final_path, old);
  }
  done = done ? move(draft, final_path) : done;
  done = done ? syncFolder(fs::path(final_path).parent_path().string()) : done;
  if (!done) {
    fs::remove_all(draft, code);
    return tl::make_unexpected(done.error());
  }
  fs::remove_all(old, code);
  saved_ = true;
  return final_path;
}

bool isOutDir(const std::string& path) {
  const Result<std::string> bytes = readWholeFile(path + "/index.json", kMaxIndex);
  if (!bytes) {
    return false;
  }
  const json parsed = json::parse(*bytes, nullptr, false);
  return parsed.is_object() && parsed.contains("schema") && parsed["schema"].is_string() &&
         parsed["schema"].get<std::string>().rfind("faultline.", 0) == 0;
}

std::string slugOf(const std::string& signature) {
  constexpr size_t kLimit = 100;
  std::string dashed = signature;
  std::replace(dashed.begin(), dashed.end(), '/', '-');
  std::string slug = wordOf(dashed, kLimit);
  slug.erase(0, slug.find_first_not_of('.'));  // no hidden folders
  if (slug == dashed && std::count(signature.begin(), signature.end(), '-') == 0) {
    return slug;
  }
  // Something was lost: a hash (FNV-1a) keeps two signatures apart.
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : signature) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{}-{:08x}", slug, static_cast<uint32_t>(hash ^ (hash >> 32)));
}

}  // namespace faultline
