// Records what tensors look like at each use while a graph runs, as plain data, and writes it down as profile
// nodes. The other source of profile nodes is libtorch's own torch::jit::ProfilingRecord.
//
// Works on copies: the graph that is given is never changed. Recording is by an operator of our own, since
// prim::profile nodes can be made to run by nobody but libtorch.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <torch/csrc/jit/ir/ir.h>

#include "faultline/error.h"

namespace faultline {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Use;

// One property of the tensors that passed a place.
template <class T>
struct SeenField {
  bool seen = false;
  bool varies = false;  // two of them differed
  T value{};            // where it was seen and does not vary
  bool known() const { return seen && !varies; }
  void see(const T& other) {
    varies = varies || (seen && value != other);
    if (!seen) value = other;
    seen = true;
  }
  void merge(const SeenField& other) {
    if (!other.seen) return;
    see(other.value);
    varies = varies || other.varies;
  }
  // The value of a field that varies is whichever came first: it counts for nothing.
  bool operator==(const SeenField& other) const {
    return seen == other.seen && varies == other.varies && (!known() || value == other.value);
  }
};

// What passed one place. Fields below `defined` are those of defined tensors; sizes and strides have `rank`
// entries, and none where the rank varies or a tensor is not strided.
struct SeenTensor {
  uint64_t times = 0;   // how often the place was executed
  uint64_t absent = 0;  // how often the value was None
  SeenField<bool> defined;
  SeenField<c10::ScalarType> dtype;
  SeenField<c10::Device> device{false, false, c10::Device(c10::DeviceType::CPU)};
  SeenField<size_t> rank;
  std::vector<SeenField<int64_t>> sizes, strides;
  SeenField<bool> requires_grad;  // of the tensor, whatever the grad mode
  SeenField<bool> grad_mode;      // where the place was executed
  SeenField<bool> stock_grad;     // requires_grad && grad mode: what libtorch's own nodes record
  void merge(const SeenTensor& other);
  bool operator==(const SeenTensor&) const = default;
};

struct RecordedSite {
  std::string user;     // its operator, "aten::mul"; "prim::Return"
  size_t offset = 0;    // which of its inputs
  bool inside = false;  // it ran inside a differentiable subgraph, where requires_grad is not what it seems
};

struct RecordedRun {
  bool grad_mode = true;          // the caller's, when it began
  std::vector<SeenTensor> sites;  // one per site
};

struct Recording {
  std::vector<RecordedSite> sites;
  std::vector<RecordedRun> runs;  // in the order in which they began
  // All runs together: what differs between them varies.
  SeenTensor merged(size_t site) const;
};

// The places that are recorded: every use of a tensor or optional tensor, profile nodes as users included, in
// graph order, blocks and subgraphs where they stand, returns at the end of their block. The graph may be a
// copy of the recorded one: site k is the same.
std::vector<Use> profileSites(const Graph& graph);

struct RecorderOptions {
  // The instrumented graph has no subgraphs any more: what is recorded is what they see inlined.
  bool inline_subgraphs = false;
};

// Threading: an instrumented graph may run on any number of threads at once, and outlive its recorder; it
// records nothing then.
class Recorder {
 public:
  struct State;

  // `graph` is copied. Profile nodes are sites but not part of what runs. Refuses a graph with profile nodes
  // whose results nothing can replace.
  static Result<Recorder> instrument(const Graph& graph, RecorderOptions options = {});
  ~Recorder();
  Recorder(Recorder&&) noexcept;
  Recorder& operator=(Recorder&&) noexcept;

  // To be run: same inputs, same outputs, same tensor objects.
  const std::shared_ptr<Graph>& graph() const;

  // While one lives, what its thread executes belongs to one run, and so does what threads without a run of
  // their own execute (those that `fork` uses). Runs nest: the innermost counts. Without one, all goes into
  // the run that was begun last, or a first one.
  class Run {
   public:
    explicit Run(const Recorder& recorder);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    std::shared_ptr<State> state_;
  };

  Recording recording() const;  // so far; a copy

 private:
  explicit Recorder(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// A copy of `graph`, of which `recording` was made, with a profile node before each use that was recorded:
// its profiled_type is what all runs saw, unseen where none came by. Uses by profile nodes get none; neither
// do uses that only ever got None. Marks: engine/profile/README.md.
std::shared_ptr<Graph> withProfileNodes(const Graph& graph, const Recording& recording);

}  // namespace faultline
