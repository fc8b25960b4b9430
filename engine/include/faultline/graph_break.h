// The graph-break compiler: splits a training graph into pieces that are differentiated ahead of time, so
// that gradient hooks fire between them (asked for in pytorch/torchdynamo PR 489).
//
// Names of ops and seams are those of NodeNames (faultline/ir.h).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/stack.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/jit/ir/ir.h>

#include "faultline/break_policy.h"
#include "faultline/error.h"
#include "faultline/timeline.h"

namespace faultline {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// An op that autodiff would get wrong, or cannot take, and that runs eagerly between compiled ops of its
// piece.
struct EagerOp {
  std::string op;
  std::string reason;
};

struct PlannedPiece {
  std::vector<std::string> ops;  // in graph order, constants left out
  std::vector<std::string>
      parameters;  // graph inputs whose gradient becomes ready here: earliest use is in this piece
  std::vector<std::string> inputs;   // names of graph inputs and of ops whose results come in
  std::vector<std::string> outputs;  // names of ops whose results go out
  std::string block;               // "body of Loop", "then of If_1": runs as often as that does; empty: once
  int64_t bytes = 0;               // of the parameters; 0 where their types are not complete
  std::string eager_reason;        // empty: ops of it can be differentiated ahead of time
  std::vector<EagerOp> eager_ops;  // those that cannot
};

struct PlannedCut {
  std::string after;   // op name
  std::string reason;  // the policy's words
};

// A cut that cannot stand where it was asked for.
struct RefusedCut {
  std::string at;       // op name; of a parameter that no gradient comes back to: its name
  std::string code;     // a row of breaks.def
  std::string reason;   // a sentence
  std::string instead;  // op behind which the nearest legal cut stands now; empty: there is none
};

// Gradients that are sent together (BreakPolicy::buckets).
struct PlannedBucket {
  std::vector<std::string> parameters;  // in the order their gradients become ready
  int64_t bytes = 0;
  size_t piece = 0;  // whose backward completes it
  std::string note;  // empty, or why it is not completed by a piece of its own
};

// A dry run. Plain data, plus the node ranges that `compile` needs; valid for the graph it was made from,
// unchanged.
struct BreakPlan {
  std::vector<PlannedPiece> pieces;
  std::vector<PlannedCut> cuts;
  std::vector<RefusedCut> refused;
  std::vector<PlannedBucket> buckets;  // the first to be sent first
  std::vector<std::string> opened;     // Ifs and Loops with pieces inside, by name; in no piece themselves
  std::vector<size_t> ends;  // per piece: index behind its last node, opened blocks before their owner
};

// Refuses a policy that cannot be meant (an unknown name, N = 0, bytes of a parameter of unknown size) and a
// graph that cannot run. A cut that is not legal is no error: it stands in `refused`, with the nearest that
// is, or the plan has fewer pieces.
Result<BreakPlan> planBreaks(const Graph& graph, const BreakPolicy& policy);

// Microseconds of each op's forward, by name, the shortest of `rounds` runs: weights for
// BreakPolicy::balanced. Runs the program on `inputs` themselves, so that what it writes is written. Refuses
// a program that throws.
Result<std::map<std::string, double>> measureOps(const Graph& graph, const torch::jit::Stack& inputs,
                                                 size_t rounds = 5);

// The graph with a box per piece, as Graphviz text. Refuses a plan of another graph.
Result<std::string> planDot(const Graph& graph, const BreakPlan& plan);

struct CompileOptions {
  // Pieces that are to be treated as if autodiff had refused them (to try the eager form).
  std::vector<size_t> force_eager;
  // Parts that are written alike, as the layers of a deep network are, are compiled once. Their graphs in
  // CompiledPiece are then those of the first, with its value names.
  bool share_equal_parts = false;
};

// Ops of a piece that share one autograd node, or that run eagerly. A piece is one part unless it has eager
// ops or results that a backward can start from independently.
struct PiecePart {
  std::shared_ptr<Graph> forward;   // outputs followed by captured values
  std::shared_ptr<Graph> backward;  // nullptr: eager
  std::vector<std::string> ops;
  bool compiled = false;
};

// What became of a planned piece, read from the real nodes.
struct CompiledPiece {
  enum class Kind { Compiled, Eager };
  std::shared_ptr<Graph>
      forward;  // of the one part; of a piece with several: its ops as written, in seam order
  std::shared_ptr<Graph> backward;  // of its last compiled part, the first to run backward; nullptr: eager
  std::vector<std::string> ops;
  Kind kind = Kind::Compiled;
  std::string reason;  // why it is eager
  std::vector<EagerOp> eager_ops;
  std::vector<PiecePart> parts;  // in the order they run
};

class CompiledGraph {
 public:
  using SeamHook = std::function<at::Tensor(const at::Tensor& grad)>;  // undefined result: keep the gradient

  // Replaces the graph's inputs on the stack by its outputs, as torch::jit::Code would; throws what eager
  // PyTorch throws. Ordinary PyTorch hooks on inputs fire between pieces: every hook of a parameter whose
  // uses lie in piece k fires after k's backward and before that of any earlier piece. An output requires
  // grad exactly if grad mode is on and an input that reaches it does. Threads: any number at once.
  void run(torch::jit::Stack& stack) const;

  const std::vector<CompiledPiece>& pieces() const;
  // One outer graph of stock nodes, for the interpreter: per compiled part a prim::TypeCheck of flags and
  // dtypes, and an If with a prim::DifferentiableGraph or, where the check fails, the ops as written.
  std::shared_ptr<Graph> stitchedGraph() const;
  Timeline& timeline() const;

  // A hook on the live value `seam` (an op name at the end of a piece) in every later run. Refuses a name
  // that is no seam, or a value with a use inside the piece that makes it: a hook would see only part of its
  // gradient.
  Result<void> onSeam(const std::string& seam, SeamHook hook);
  // The value of the last run of the calling thread, the last of several; undefined before the first, and, in
  // a program that writes in place, where nobody holds it any more and no gradient can come to it.
  at::Tensor seam(const std::string& seam) const;
  // The same, one for each time that its piece ran: pieces inside a Loop run once per round.
  std::vector<at::Tensor> seamValues(const std::string& seam) const;
  // The autograd node of piece k in the last run of the calling thread; nullptr when nothing required grad,
  // or no result that hangs on it is left. Lives as long as these results.
  torch::autograd::Node* pieceNode(size_t k) const;

  struct Impl;
  explicit CompiledGraph(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

// Inputs whose type does not say requires_grad=0 are taken to require grad. Does not change `graph`. A piece
// that autodiff cannot take runs eagerly, with its reason; it does not fail the others.
Result<CompiledGraph> compile(std::shared_ptr<Graph> graph, const BreakPlan& plan,
                              const CompileOptions& options = {});

// opcode / name / target / args / kwargs, as torch.fx's print_tabular: inputs as "placeholder", ops as
// "call_function", pieces as "call_module" (without the check that guards them), the return as "output".
// Columns are padded; long cells wrap at `width`.
//
// `names`: what a piece's inputs and ops are called in the graph it is of; ops are matched in order by kind,
// and what has no name there gets one of its own.
struct TableNames {
  std::vector<std::string> inputs, ops;
};
std::string graphTable(const Graph& graph, size_t width = 80, const TableNames& names = {});

}  // namespace faultline
