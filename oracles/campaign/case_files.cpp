#include "oracles/campaign/case_files.h"

#include <filesystem>

#include "oracles/campaign/out_dir.h"

namespace faultline {

namespace fs = std::filesystem;

namespace {

// Far above any case that could be meant; keeps a wrong argument from filling the memory.
constexpr size_t kMaxCaseFile = size_t{16} << 20;

void readOne(const std::string& path, CaseFiles& files) {
  Result<std::string> text = readWholeFile(path, kMaxCaseFile);
  if (!text) {
    files.bad.push_back(text.error());
    return;
  }
  Result<Case> value = readCase(*text);
  if (!value && isMissingOperator(value.error())) {
    files.other_torch.push_back({path, value.error().message});
    return;
  }
  if (!value) {
    files.bad.push_back(value.error());
    files.bad.back().file = path;
    return;
  }
  files.cases.push_back({path, std::move(*text), std::move(*value)});
}

uint64_t countFiles(const fs::path& folder) {
  uint64_t count = 0;
  std::error_code code;
  for (auto it = fs::recursive_directory_iterator(folder, code);
       !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    count += it->is_directory(code) || it->path().filename() == "lock" ? 0 : 1;
  }
  return count;
}

void readFolder(const std::string& path, CaseFiles& files) {
  std::vector<std::string> found;
  std::error_code code;
  for (auto it = fs::recursive_directory_iterator(path, code);
       !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (it->is_directory(code)) {
      if ((name == "flaky" || name == "inflight") && isOutDir(it->path().parent_path().string())) {
        files.set_aside += countFiles(it->path());
        it.disable_recursion_pending();
      }
    } else if (it->path().extension() == ".case") {
      found.push_back(it->path().string());
    } else {
      ++files.other_files;
    }
  }
  if (code) {
    files.bad.push_back(systemError(path, "read the folder", code.value()));
    files.bad.back().kind = ErrorKind::Invalid;
  }
  std::sort(found.begin(), found.end());
  for (const std::string& file : found) {
    readOne(file, files);
  }
}

}  // namespace

CaseFiles readCaseFiles(const std::vector<std::string>& paths) {
  CaseFiles files;
  for (const std::string& path : paths) {
    std::error_code code;
    if (fs::is_directory(path, code)) {
      readFolder(path, files);
    } else {
      readOne(path, files);
    }
  }
  return files;
}

}  // namespace faultline
