#include "generators/shrink/tape_shrink.h"

#include <algorithm>

namespace faultline {
namespace {

using ChoiceList = std::vector<uint64_t>;

bool simpler(const ChoiceList& a, const ChoiceList& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

std::vector<TapeSpan> longestFirst(std::vector<TapeSpan> spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TapeSpan& a, const TapeSpan& b) { return a.end - a.begin > b.end - b.begin; });
  spans.erase(std::remove_if(spans.begin(), spans.end(), [](const TapeSpan& s) { return s.begin == s.end; }),
              spans.end());
  return spans;
}

void addSpans(const Tape& tape, std::vector<TapeEdit>& edits) {
  auto spans = longestFirst(tape.spans);
  for (const auto& span : spans) {
    edits.push_back({span.begin, span.end, {}});
  }
  for (const auto& outer : spans) {
    for (const auto& inner : spans) {
      bool inside = inner.begin >= outer.begin && inner.end <= outer.end && inner.depth > outer.depth;
      if (inside && inner.label == outer.label) {
        edits.push_back({outer.begin, outer.end,
                         ChoiceList(tape.choices.begin() + static_cast<ptrdiff_t>(inner.begin),
                                    tape.choices.begin() + static_cast<ptrdiff_t>(inner.end))});
      }
    }
  }
  for (const auto& span : spans) {
    edits.push_back({span.begin, span.end, ChoiceList(span.end - span.begin, 0)});
  }
}

void addStretches(const ChoiceList& choices, std::vector<TapeEdit>& edits) {
  constexpr size_t kShortest = 8;  // below it single choices do as well
  for (size_t size = choices.size() / 2; size >= kShortest; size /= 2) {
    for (size_t end = choices.size(); end >= size; end -= size) {
      edits.push_back({end - size, end, {}});
    }
  }
}

void addSingleChoices(const ChoiceList& choices, std::vector<TapeEdit>& edits) {
  for (size_t i = 0; i < choices.size(); ++i) {
    uint64_t last = choices[i];
    for (uint64_t smaller : {uint64_t{0}, choices[i] / 2, choices[i] - 1}) {
      if (choices[i] != 0 && smaller != last) {
        edits.push_back({i, i + 1, {smaller}});
        last = smaller;
      }
    }
  }
}

}  // namespace

ChoiceList TapeEdit::apply(const ChoiceList& choices) const {
  ChoiceList edited(choices.begin(), choices.begin() + static_cast<ptrdiff_t>(begin));
  edited.insert(edited.end(), with.begin(), with.end());
  edited.insert(edited.end(), choices.begin() + static_cast<ptrdiff_t>(end), choices.end());
  return edited;
}

std::vector<TapeEdit> shrinkEdits(const Tape& recorded) {
  const ChoiceList& choices = recorded.choices;
  std::vector<TapeEdit> edits;
  size_t used = choices.size();
  while (used > 0 && choices[used - 1] == 0) {
    --used;  // a tape that has run out reads as zeros
  }
  edits.push_back({used, choices.size(), {}});
  addSpans(recorded, edits);
  addStretches(choices, edits);
  addSingleChoices(choices, edits);
  edits.erase(std::remove_if(edits.begin(), edits.end(),
                             [&](const TapeEdit& edit) {
                               ChoiceList before(choices.begin() + static_cast<ptrdiff_t>(edit.begin),
                                                 choices.begin() + static_cast<ptrdiff_t>(edit.end));
                               return !simpler(edit.with, before);
                             }),
              edits.end());
  return edits;
}

Tape minimizeTape(Tape failing, const std::function<std::optional<Tape>(const ChoiceList&)>& still_fails,
                  MinimizeLimits limits) {
  size_t tries = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& edit : shrinkEdits(failing)) {
      if (tries++ == limits.tries) {
        return failing;
      }
      // The recorded tape can be longer than the edited one (zeros behind its end): it must be simpler
      // itself, or this would not end.
      auto smaller = still_fails(edit.apply(failing.choices));
      if (smaller && simpler(smaller->choices, failing.choices)) {
        failing = std::move(*smaller);
        progress = true;
        break;
      }
    }
  }
  return failing;
}

}  // namespace faultline
