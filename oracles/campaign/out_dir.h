// The folder behind --out. Whatever instant the program is killed at, nothing in it outside `inflight/` is
// half-written: files and folders are made in `inflight/`, synced, and renamed to where they belong.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "faultline/error.h"
#include "oracles/workers/system.h"

namespace faultline {

class OutDir {
 public:
  struct File {
    std::string name, bytes;
  };

  // Makes and locks the folder. Refuses (Invalid) a non-empty one without `resume`, one that is no --out
  // folder, and one that another process is using. An empty path: a temporary folder, removed at the end if
  // nothing was saved.
  static Result<std::unique_ptr<OutDir>> open(const std::string& path, bool resume);
  ~OutDir();
  OutDir(const OutDir&) = delete;
  OutDir& operator=(const OutDir&) = delete;

  const std::string& path() const { return path_; }
  std::string inflight() const { return path_ + "/inflight"; }
  // index.json as an earlier campaign left it.
  const std::optional<nlohmann::json>& index() const { return index_; }

  // `sync` also survives a power cut; without it a killed process's last index does.
  Result<void> writeIndex(const nlohmann::json& index, bool sync);
  Result<void> appendStats(const nlohmann::json& line);
  // A folder NAME (may be "flaky/X") with these files; replaces one of that name. Returns its path.
  Result<std::string> save(const std::string& name, const std::vector<File>& files);

 private:
  OutDir(std::string path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}
  Result<void> prepare(bool resume);

  std::string path_;
  bool temporary_;
  bool saved_ = false;
  UniqueFd lock_;
  std::optional<nlohmann::json> index_;
};

// Whether `path` is a folder that OutDir made.
bool isOutDir(const std::string& path);

// A folder name for a signature: readable, and different for different signatures.
std::string slugOf(const std::string& signature);

}  // namespace faultline
