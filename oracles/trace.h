// What one lane did with one case, as plain data: oracles judge traces and run nothing.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "oracles/profile_trace.h"

namespace faultline {

// A tensor seen from outside at one moment.
struct TensorTrace {
  std::string path;  // "out0", "out1[2]", "in0": position in outputs or inputs
  bool defined = true;
  at::ScalarType dtype = at::kFloat;
  c10::DeviceType device = c10::DeviceType::CPU;
  std::vector<int64_t> sizes, strides;
  bool requires_grad = false;
  bool is_leaf = true;
  int64_t version = 0;
  int alias_class = -1;  // equal numbers: same storage, over inputs and outputs of one run
  int same_object = -1;  // equal numbers: the same TensorImpl
  at::Tensor values;     // detached, contiguous copy on the CPU; undefined when not defined
};

struct ScalarTrace {
  std::string path;
  std::string text;  // the value as IR prints it, doubles in full
};

struct HookTrace {
  // Those of the case's hooks, in their order, and the beginnings of backwards.
  enum class Kind {
#define FAULTLINE_HOOK(Name, word, help) Name,
#include "generators/case/hooks.def"
    PieceBackward
  };
  Kind kind = Kind::Tensor;
  std::string on;        // "in0", a seam's op name, "piece2"
  uint64_t seq = 0;      // order within the phase
  TensorTrace argument;  // the gradient handed over; not for PieceBackward
  int execution = -1;  // PieceBackward: position of its forward in RunTrace::executed; -1: that of the piece
};

struct ErrorTrace {
  std::string type;    // "RuntimeError", "IndexError": eager PyTorch's class of it
  std::string detail;  // a row of errors.def, else the last line without numbers, shapes, names and paths
  std::string text;    // in full, for people
};

struct PhaseTrace {
  enum class Kind { Forward, Backward, Double };
  Kind kind = Kind::Forward;
  int backward = -1;  // index into CaseRun::backwards
  std::optional<ErrorTrace> error;
  std::vector<TensorTrace> outputs;    // forward: results
  std::vector<ScalarTrace> scalars;    // forward: results that are no tensors
  std::vector<TensorTrace> inputs;     // forward: the inputs afterwards
  std::vector<TensorTrace> gradients;  // backward: of each input that requires grad, "in0" …; undefined kept
  std::vector<HookTrace> hooks;
  std::string name() const;  // "forward", "backward0", "double1"
};

struct RunTrace {
  std::vector<PhaseTrace> phases;
  std::vector<int> executed;  // pieces, as they ran forward; inside a Loop one comes often; empty: each once
};

struct PieceTrace {
  std::vector<std::string> ops;  // op names in the case's graph
  bool compiled = true;
  std::string reason;
};

// Gradients that are sent together.
struct BucketTrace {
  std::vector<size_t> inputs;  // whose gradients, in the order they become ready
  int64_t bytes = 0;
  int piece = 0;  // whose backward completes it
};

// How often something that is worth a share in reports was so, of how often it could have been.
struct ShareTrace {
  std::string name;  // "answered"
  uint64_t hits = 0, of = 0;
};

struct Trace {
  std::string lane;
  std::string skip;  // not empty: the lane did not take the case, and why ("plan_unsupported", "no_cuda", …)
  std::vector<RunTrace> runs;
  std::vector<PieceTrace> pieces;  // lanes that break graphs
  bool compiled_whole = false;     // a lane that breaks none ran what the engine compiled
  std::vector<std::string> refused_cuts;
  std::vector<BucketTrace> buckets;     // lanes that break graphs into c10d's
  std::string graph_text;               // what ran, after passes
  std::optional<ProfileTrace> profile;  // lanes that follow the profile protocol
  std::vector<ShareTrace> shares;
  double seconds = 0;
};

}  // namespace faultline
