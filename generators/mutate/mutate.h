// Edits of finished cases, for coverage-guided fuzzing: graphs, inputs, runs and plans.
//
// Static: works on what case text says, never runs a kernel. Total: any case that is read gives a case that
// verifies and can be written and read back (otherwise it aborts at once). All randomness comes from Choices,
// so one seed is one edit.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generators/case/case.h"
#include "generators/choices/choices.h"

namespace faultline {

namespace mutate_limits {
// Bounds of what edits may add; a larger case that comes in can only shrink.
inline constexpr size_t max_nodes = 96;   // a few generated cases behind one another
inline constexpr size_t max_inputs = 16;  // two generated cases seldom have more
inline constexpr size_t max_returns = 8;
inline constexpr size_t max_depth = 4;  // blocks within each other
inline constexpr size_t max_hooks = 8;
inline constexpr size_t max_bytes = 24000;        // of text
inline constexpr int64_t max_elements = 1 << 14;  // of all inputs of a run, of a constant
inline constexpr int64_t max_integer = 1 << 10;   // sizes and trip counts are far below it
}  // namespace mutate_limits

struct MutationKind {
  std::string name, help;
};
const std::vector<MutationKind>& mutationKinds();  // mutations.def

// One to four edits. `kinds`: the names of those made, where asked for.
Case mutateCase(const Case& c, Choices& choices, std::vector<std::string>* kinds = nullptr);

// One edit of this kind; nothing where the case has no place for it, or none where operands are sure to fit.
std::optional<Case> mutateCase(const Case& c, Choices& choices, const std::string& kind);

// The second graph behind the first, inputs united, and where forms allow it fed by the first one's results.
Case crossCases(const Case& first, const Case& second, Choices& choices);

// Whether a case is of a size that edits make and keep. Text by others may ask for gigabytes, or for loops
// without end: no finding, but the end of a fuzzer's run.
bool isSmallCase(const Case& c);

// The same on text, as fuzzers hand it over. Text that is no case gives a small case of its own.
std::string mutateCaseText(std::string_view text, uint64_t seed);
std::string crossCaseTexts(std::string_view first, std::string_view second, uint64_t seed);

}  // namespace faultline
