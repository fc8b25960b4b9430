// From the paths of a command line to case texts.
#pragma once
#include <string>
#include <vector>

#include "generators/case/case.h"

namespace faultline {

struct CaseFile {
  std::string path, text;
  Case value;
};

// A case with an op that the running torch does not have.
struct OtherTorch {
  std::string path, reason;
};

struct CaseFiles {
  std::vector<CaseFile> cases;  // files in the order given; those of a folder by name
  std::vector<OtherTorch> other_torch;
  std::vector<Error> bad;    // with file, line and column
  uint64_t other_files = 0;  // in folders, not named *.case
  uint64_t set_aside = 0;    // under flaky/ and inflight/ of --out folders
};

// Never fails as a whole: what cannot be read stands in `bad`, paths that do not exist included.
CaseFiles readCaseFiles(const std::vector<std::string>& paths);

}  // namespace faultline
