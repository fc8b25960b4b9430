// A case: one graph, its inputs, runs and plan: all that a lane needs to execute and an oracle to judge.
// Plain data.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/jit/ir/ir.h>

#include "faultline/error.h"
#include "generators/case/spec.h"

namespace faultline {

// What is differentiated in one backward phase. Each output tensor is weighted by fixed pseudo-random
// numbers.
struct BackwardSpec {
  enum class Kind { All, Output, Double };
  Kind kind = Kind::All;
  size_t output = 0;  // Output: from this output alone
  bool operator==(const BackwardSpec&) const = default;
};

// One execution with one set of inputs. Values are fresh and equal for every lane.
struct CaseRun {
  std::vector<InputSpec> inputs;
  bool grad_mode = true;                // the caller's
  std::vector<BackwardSpec> backwards;  // phases after the forward, on the same autograd graph; empty: none
  bool operator==(const CaseRun&) const = default;
};

enum class HookKind {
#define FAULTLINE_HOOK(Name, word, help) Name,
#include "generators/case/hooks.def"
};

enum class HookAction {
#define FAULTLINE_HOOK_ACTION(Name, word, fits, help) Name,
#include "generators/case/hooks.def"
};

struct HookSpec {
  HookKind kind = HookKind::Tensor;
  size_t input = 0;  // graph input it sits on, or …
  std::string seam;  // … the op name of the value, when not empty
  HookAction action = HookAction::Log;
  bool operator==(const HookSpec&) const = default;
};
const char* hookWord(HookKind kind);                     // "tensor", a row of hooks.def
const char* hookWord(HookAction action);                 // "replace"; "" for Log
bool fitsHook(HookAction action, const HookSpec& hook);  // whatever its own action is
const std::vector<HookKind>& allHookKinds();
const std::vector<HookAction>& allHookActions();

// What is done to the graph. Directives without an actor yet are kept: the lanes answer
// Skip(plan_unsupported).
struct Plan {
  std::string breaks = "none";  // "none", "every N", "after a b c"; more policies are read and kept
  std::vector<HookSpec> hooks;
  std::string profile = "none";  // "none", "keep" (nodes as they stand in the graph), "record" (by the lane)
  std::vector<std::string> passes;
  int64_t ranks = 1;
  bool operator==(const Plan&) const = default;
};

// `expect: LANES[@FROM[..[TO]]] pass|SIGNATURE…`: what replay demands of a group of lanes, or of one lane, on
// these torch versions.
struct Expectation {
  std::string group;                    // a lane's own expectation goes before its group's
  std::string from, to;                 // "2.13", empty: open
  bool open_range = false;              // FROM.. or ..TO; false with `from` only: exactly that version
  std::vector<std::string> signatures;  // empty: pass
  bool appliesTo(std::string_view torch_version) const;
  bool operator==(const Expectation&) const = default;
};

// A directive this version does not know; kept as it was. `!name` (required) is an error when read.
struct UnknownDirective {
  std::string name, value;
  bool operator==(const UnknownDirective&) const = default;
};

struct Case {
  uint64_t seed = 0;  // of values and of every random stream
  std::shared_ptr<torch::jit::Graph> graph;
  std::vector<CaseRun> runs;
  Plan plan;
  std::vector<Expectation> expectations;
  std::vector<std::string> known;  // `known: ID…`: rows of known.def that explain what is expected to fail
  std::map<std::string, std::string> notes;  // `note NAME: text`: where it comes from; never acted on
  std::vector<UnknownDirective> unknown;
};

// Text form, first line `faultline case 1`. Errors give line and column.
Result<Case> readCase(std::string_view text);
// Whether readCase refused a text only because the running torch has no operator of that name: the file is
// not wrong, another torch runs it.
bool isMissingOperator(const Error& error);
std::string writeCase(const Case& c);

enum class FileKind { Case, Tape, Ir, TorchScript, Archive, Unknown };
// Says the first line that is neither blank nor a # comment (archives: their magic), never a trial.
FileKind fileKind(std::string_view bytes);

Case cloneCase(const Case& c);  // copies the graph too
// Unlike Graph::copy, which shares them, with constants of its own: a program may write into a tensor
// constant.
std::shared_ptr<torch::jit::Graph> cloneGraph(const torch::jit::Graph& graph);

}  // namespace faultline
