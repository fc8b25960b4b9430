// Epochs: between which places nothing that matters was written. SSA form of a piece of memory, on structured
// code.
//
// For a list of writes, every position of the program has a version. Two positions of one version see what
// the same event left behind. An event is a write, or a place where control flow meets that writes lead into.
#pragma once
#include <vector>

#include "engine/profile/program.h"

namespace faultline::profile {

enum class VersionKind : uint8_t { Entry, Write, IfMerge, LoopBody, LoopExit };

struct VersionPart {
  int32_t version;
  Pos at;       // where control leaves for the merge
  int32_t arm;  // the block it leaves; -1: it comes from before
};

struct Version {
  VersionKind kind = VersionKind::Entry;
  Pos at = 0;          // where it begins
  int32_t write = -1;  // index of the caller's
  std::vector<VersionPart> parts;
};

struct WriteAt {
  int32_t step;
  int32_t write;
};

class Versions {
 public:
  Versions(const FlowProgram& program, std::vector<WriteAt> writes);  // any order
  int32_t at(Pos pos) const;
  const Version& operator[](int32_t version) const { return all_[static_cast<size_t>(version)]; }
  size_t size() const { return all_.size(); }

 private:
  std::vector<Version> all_;
  std::vector<Pos> from_;  // sorted; version_[i] holds from from_[i] on
  std::vector<int32_t> version_;
};

}  // namespace faultline::profile
