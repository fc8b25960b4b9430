// What passes do to the profile protocol: each is run on graphs whose answers stand at their uses, and what
// is left of that is counted.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/stack.h>

#include "generators/case/case.h"
#include "oracles/passes/stock_passes.h"

namespace faultline {

// A propagated graph without findings, and the run it was profiled on.
struct ProfiledSample {
  std::shared_ptr<torch::jit::Graph> graph;
  std::shared_ptr<const Case> program;  // nullptr: the run is not known, answers cannot be held against it
};

// Of the share of uses with an answer: less than this is no loss.
constexpr double kShareThatMayGo = 0.01;

enum class PassVerdict {
  Idle,          // changed no graph: nothing is shown
  Keeps,         // what it leaves validates
  Propagate,     // it does once propagated again, with as many answers
  LosesAnswers,  // it does once propagated again, with fewer answers
  Contradicts,   // profile nodes contradict each other or the values they stand on
  WrongAnswers,  // an answer does not describe what arrives on the run it was profiled on
  Invalid,       // it leaves no graph that could run, whatever its profile
  Throws,        // on graphs, and changed no other
  Crashes,       // ended the process; what it did before that is not known
};
const char* toString(PassVerdict verdict);

struct PassRow {
  std::string name, meant_for;
  PassVerdict verdict = PassVerdict::Idle;
  uint64_t graphs = 0;   // it ran on
  uint64_t changed = 0;  // of these
  uint64_t threw = 0;    // others it threw on
  uint64_t invalid = 0;  // of those that changed: no graph that can run any more, whatever its profile
  uint64_t ran = 0;      // of those that changed: run again, answers compared with what arrived
  uint64_t evidence_lost = 0, clones_lost = 0;    // profile nodes
  uint64_t answered_before = 0, uses_before = 0;  // of uses of tensors by anything but profile nodes
  uint64_t answered_after = 0, uses_after = 0;    // after it and propagation
  std::map<std::string, uint64_t> findings;       // as it leaves graphs, by kind
  std::map<std::string, uint64_t> staying;        // after propagation
  std::map<std::string, uint64_t> wrong;          // answers, by field
  std::string example;                            // of the worst that was seen; of an error, what it said
};

// The case's first run under the recorder; some of the nodes are left out, so that there is something to
// propagate. Programs that throw make no sample. The same case gives the same sample.
std::optional<ProfiledSample> sampleOfCase(const Case& c);

// Of generated programs. The same seed gives the same samples.
std::vector<ProfiledSample> generatedSamples(uint64_t seed, uint64_t cases);

// Refuses (Invalid) a graph that has findings even when propagated. `graph` is copied, but for the counter of
// runs still to be profiled that the executor leaves in graphs: libtorch takes it out before its passes, most
// of which throw on it.
Result<ProfiledSample> sampleOf(const torch::jit::Graph& graph);

// One row per pass, in order, each found out in a process of its own (fork: torch has to run on one thread),
// since libtorch's passes may end theirs. Samples are not changed.
std::vector<PassRow> passTable(const std::vector<StockPass>& passes,
                               const std::vector<ProfiledSample>& samples);

}  // namespace faultline
