#include "engine/profile/versions.h"

#include <algorithm>
#include <unordered_set>

namespace faultline::profile {
namespace {

enum class MarkKind : uint8_t { Begin, Write, End, Close };

struct Mark {
  Pos at;
  MarkKind kind;
  int32_t index;  // control block, write or open step
};

struct VersionFrame {
  int32_t open;
  int32_t entry;      // version before the owner
  int32_t body = -1;  // version at the begin of a loop body
  std::vector<VersionPart> ends;
};

}  // namespace

Versions::Versions(const FlowProgram& program, std::vector<WriteAt> writes) {
  std::stable_sort(writes.begin(), writes.end(),
                   [](const WriteAt& a, const WriteAt& b) { return a.step < b.step; });
  std::vector<Mark> marks;
  std::unordered_set<int32_t> owners;  // open steps of nodes with a write somewhere inside
  for (const WriteAt& write : writes) {
    marks.push_back({FlowProgram::after(write.step), MarkKind::Write, write.write});
    int32_t control = program.step(write.step).control;
    while (program.control(control).open >= 0 && owners.insert(program.control(control).open).second) {
      control = program.control(control).parent;
    }
  }
  for (int32_t open : owners) {
    for (int32_t block : program.blocksOf(open)) {
      marks.push_back({FlowProgram::after(program.control(block).begin), MarkKind::Begin, block});
      marks.push_back({FlowProgram::after(program.control(block).end), MarkKind::End, block});
    }
    marks.push_back({FlowProgram::after(program.step(open).match), MarkKind::Close, open});
  }
  // Writes of one node share a position and keep their order. What a node with blocks writes itself comes
  // after them.
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
    if (a.at != b.at) return a.at < b.at;
    return a.kind == MarkKind::Close && b.kind != MarkKind::Close;
  });

  all_.emplace_back();
  from_.push_back(0);
  version_.push_back(0);
  int32_t current = 0;
  auto begin = [&](VersionKind kind, Pos at, int32_t write, std::vector<VersionPart> parts) {
    all_.push_back({kind, at, write, std::move(parts)});
    return static_cast<int32_t>(all_.size()) - 1;
  };
  auto change = [&](Pos at, int32_t version) {
    current = version;
    from_.push_back(at);
    version_.push_back(version);
  };
  std::vector<VersionFrame> stack;
  for (const Mark& mark : marks) {
    switch (mark.kind) {
      case MarkKind::Write: {
        const Pos before = mark.at - 1;
        change(mark.at, begin(VersionKind::Write, mark.at, mark.index, {{current, before, -1}}));
        break;
      }
      case MarkKind::Begin: {
        const Control& control = program.control(mark.index);
        if (stack.empty() || stack.back().open != control.open)
          stack.push_back({control.open, current, -1, {}});
        VersionFrame& frame = stack.back();
        if (control.kind == ControlKind::Arm) {
          change(mark.at, frame.entry);
        } else {
          frame.body = begin(VersionKind::LoopBody, mark.at, -1,
                             {{frame.entry, FlowProgram::before(control.open), -1}});
          change(mark.at, frame.body);
        }
        break;
      }
      case MarkKind::End: {
        const Control& control = program.control(mark.index);
        const VersionPart part{current, FlowProgram::before(control.end), mark.index};
        stack.back().ends.push_back(part);
        if (control.kind != ControlKind::Arm)
          all_[static_cast<size_t>(stack.back().body)].parts.push_back(part);
        break;
      }
      case MarkKind::Close: {
        const VersionFrame frame = std::move(stack.back());
        stack.pop_back();
        std::vector<VersionPart> parts = frame.ends;
        if (frame.body >= 0) parts.insert(parts.begin(), {frame.entry, FlowProgram::before(frame.open), -1});
        const bool one = std::all_of(parts.begin(), parts.end(), [&](const VersionPart& part) {
          return part.version == parts[0].version;
        });
        if (one) {
          change(mark.at, parts[0].version);
        } else {
          const VersionKind kind = frame.body >= 0 ? VersionKind::LoopExit : VersionKind::IfMerge;
          change(mark.at, begin(kind, mark.at, -1, std::move(parts)));
        }
        break;
      }
    }
  }
}

int32_t Versions::at(Pos pos) const {
  const auto it = std::upper_bound(from_.begin(), from_.end(), pos);
  return version_[static_cast<size_t>(it - from_.begin()) - 1];
}

}  // namespace faultline::profile
