#include "oracles/passes/pruning_table.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/jit.h>

#include <set>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/gradient.h"
#include "engine/ir/walk.h"
#include "engine/support/check.h"
#include "faultline/apply_profile.h"
#include "faultline/ir.h"
#include "faultline/profile.h"
#include "faultline/recorder.h"
#include "oracles/exec/profiling_modes.h"

namespace faultline {
namespace {

namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;
using torch::jit::Stack;

// In each, x and v come without requires_grad and w with it.
struct PruningProgram {
  const char* name;
  const char* what;
  const char* source;
  bool profiled_flag, measured_flag;  // the argument c
};

constexpr const char* kNested = R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    p = torch.tanh(x)
    y = torch.mm(p, w)
    if c:
        if n > 1:
            a = torch.tanh(torch.mm(p, w))
            b = torch.sigmoid(torch.mm(a, v))
            y = torch.relu(torch.mul(b, p))
    return torch.mul(y, y)
)";

constexpr PruningProgram kPruningPrograms[] = {
    {"straight", "six ops in a row", R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    a = torch.tanh(torch.mm(x, w))
    b = torch.sigmoid(torch.mm(a, v))
    return torch.relu(torch.mul(b, x))
)",
     true, true},
    {"nested", "the same in an If in an If", kNested, true, true},
    {"nested, cold", "the same, in arms that the profiled run did not take", kNested, false, true},
    {"If", "what an If makes is read by six ops", R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    if c:
        p = torch.neg(x)
    else:
        p = torch.relu(x)
    a = torch.tanh(torch.mm(p, w))
    b = torch.sigmoid(torch.mm(a, v))
    return torch.relu(torch.mul(b, p))
)",
     true, true},
    {"If, cold", "six ops in an arm that the profiled run did not take", R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    y = torch.mm(x, w)
    if c:
        a = torch.tanh(torch.mm(x, w))
        b = torch.sigmoid(torch.mm(a, v))
        y = torch.relu(torch.mul(b, x))
    return torch.mul(y, y)
)",
     false, true},
    {"Loop", "six ops in the body of a loop of three rounds", R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    s = w
    for i in range(n):
        a = torch.tanh(torch.mm(x, s))
        b = torch.sigmoid(torch.mm(a, v))
        s = torch.relu(torch.mul(b, x))
    return s
)",
     true, true},
    {"Loop, cold", "the same in a loop that the profiled run left at once", R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    rounds = 0
    if c:
        rounds = n
    s = torch.mm(x, w)
    for i in range(rounds):
        a = torch.tanh(torch.mm(x, s))
        b = torch.sigmoid(torch.mm(a, v))
        s = torch.relu(torch.mul(b, x))
    return s
)",
     false, true},
    {"list", "a list of tensors of which one requires grad", R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    p = torch.cat(l, 0)
    a = torch.tanh(torch.mm(p, w))
    b = torch.sigmoid(torch.mm(a, v))
    return torch.relu(torch.mul(b, p))
)",
     true, true},
    {"multi-use", "a tensor that ops read on both sides of one that libtorch does not differentiate",
     R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    p = torch.tanh(x)
    a = torch.tanh(torch.mm(p, w))
    b = torch.sigmoid(torch.mm(a, v))
    r = torch.cumsum(torch.mul(b, p), 0)
    d = torch.relu(torch.mul(r, p))
    e = torch.sigmoid(torch.mm(d, v))
    return torch.tanh(torch.mul(e, p))
)",
     true, true},
    {"multi-use, cold",
     "tensors that ops read before an If and in the arm that the profiled run did not take",
     R"(
def f(x, w, v, c: bool, n: int, l: List[Tensor]):
    p = torch.tanh(x)
    a = torch.tanh(torch.mm(p, w))
    y = torch.sigmoid(torch.mm(a, v))
    if c:
        d = torch.relu(torch.mul(y, p))
        e = torch.sigmoid(torch.mm(d, v))
        y = torch.tanh(torch.mul(e, p))
    return y
)",
     false, true}};

Stack inputsOf(bool flag) {
  const auto ones = [](double value) { return at::full({3, 3}, value); };
  const at::Tensor w = ones(0.25).requires_grad_();
  return {ones(0.5), w,          ones(0.75),
          flag,      int64_t{3}, c10::List<at::Tensor>({ones(0.125), w, ones(0.375), ones(0.625)})};
}

// Ops called while it lives, on this thread: a backward on the CPU runs on the thread that asks for it.
class CountedCalls {
 public:
  CountedCalls() {
    calls() = 0;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
          ++calls();
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~CountedCalls() { at::removeCallback(handle_); }
  CountedCalls(const CountedCalls&) = delete;
  CountedCalls& operator=(const CountedCalls&) = delete;
  static uint64_t& calls() {
    static thread_local uint64_t count = 0;
    return count;
  }

 private:
  at::CallbackHandle handle_;
};

// What a backward from the results does for tensors that do not require grad. Eager autograd's nodes have an
// edge to nowhere for each and compute nothing for it. Nodes of code that was made ahead of time have an edge
// for each gradient that the code computes, to nowhere where it is thrown away; and they may take gradients
// of results that depend on nothing that requires grad, which were computed for nothing then.
class NeedlessGradients {
 public:
  explicit NeedlessGradients(const Stack& results) {
    std::vector<Edge> open = {torch::autograd::impl::gradient_edge(results[0].toTensor())};
    std::set<const torch::autograd::Node*> seen;
    std::vector<Edge> into_compiled;
    while (!open.empty()) {
      const Edge at = open.back();
      open.pop_back();
      if (!seen.insert(at.function.get()).second) continue;
      if (at.function->num_outputs() == 0) leaves_.emplace_back(at.function, 0);
      for (const Edge& edge : at.function->next_edges()) {
        if (!edge.is_valid()) ++(isCompiled(*at.function) ? computed : left_out);
        if (!edge.is_valid()) continue;
        open.push_back(edge);
        if (isCompiled(*edge.function)) into_compiled.push_back(edge);
      }
    }
    for (const Edge& edge : into_compiled) computed += reachesALeaf(edge) ? 0 : 1;
  }

  uint64_t left_out = 0;  // by eager autograd
  uint64_t computed = 0;

 private:
  using Edge = torch::autograd::Edge;

  static bool isCompiled(const torch::autograd::Node& node) {
    const std::string name = node.name();
    return name.find("DifferentiableGraphBackward") != std::string::npos ||
           name.rfind("PieceBackward", 0) == 0;
  }

  bool reachesALeaf(const Edge& edge) const {
    const auto& like = edge.function->input_metadata(edge.input_nr);
    const auto gradients = torch::autograd::Engine::get_default_engine().execute(
        {edge}, {like.zeros_like().fill_(1)}, /*keep_graph=*/true,
        /*create_graph=*/false, /*accumulate_grad=*/false, leaves_);
    return std::any_of(gradients.begin(), gradients.end(), [](const at::Tensor& gradient) {
      return gradient.defined() && gradient.count_nonzero().item<int64_t>() > 0;
    });
  }

  torch::autograd::edge_list leaves_;
};

void countNeedless(PruningSide& side, const Stack& results) {
  const NeedlessGradients needless(results);
  side.left_out_then = needless.left_out;
  side.computed = needless.computed;
}

uint64_t backwardCalls(const Stack& results) {
  const at::Tensor sum = results[0].toTensor().sum();
  const CountedCalls counted;
  sum.backward();
  return CountedCalls::calls();
}

// Behind the last op of each block: whatever stands in Ifs and Loops is cut off from it, and so compiled.
bool endsABlock(const Node& node) {
  return node.owningBlock() != node.owningGraph()->block() &&
         node.next() == node.owningBlock()->return_node();
}

int64_t opsOf(const torch::jit::Block* block) {
  int64_t count = 0;
  forEachNode(block, [&](const Node* node) { count += node->kind() == prim::Constant ? 0 : 1; });
  return count;
}

Result<PruningSide> measureOurs(const std::shared_ptr<Graph>& graph, const PruningProgram& program) {
  auto recorder = Recorder::instrument(*graph, {.inline_subgraphs = true});
  if (!recorder) return tl::make_unexpected(recorder.error());
  {
    const Recorder::Run run(*recorder);
    Stack stack = inputsOf(program.profiled_flag);
    torch::jit::Code code(recorder->graph(), "recorded");
    torch::jit::InterpreterState(code).run(stack);
  }
  auto profiled = withProfileNodes(*graph, recorder->recording());
  propagateProfileNode(profiled);
  auto applied = applyProfile(profiled, {BreakPolicy::predicate(endsABlock).insideBlocks()});
  if (!applied) return tl::make_unexpected(applied.error());
  PruningSide side;
  for (const CompiledPiece& piece : applied->compiled().pieces()) {
    for (const PiecePart& part : piece.parts) {
      if (!part.compiled || part.backward == nullptr) continue;
      ++side.parts;
      side.gradients += part.backward->outputs().size();
    }
  }
  side.pruned = applied->report().pruned;
  side.backward_nodes = applied->report().backward_nodes_saved;
  Stack stack = inputsOf(program.measured_flag);
  applied->run(stack);
  side.calls = backwardCalls(stack);
  stack = inputsOf(program.measured_flag);
  applied->run(stack);
  countNeedless(side, stack);
  return side;
}

// What a subgraph of the executor's plan would be without a profile: all its tensors require grad.
void addPlan(const Node& node, PruningSide& side) {
  const std::vector<int64_t>& computed = node.is(attr::df_output_vjps);
  if (computed.empty()) return;
  ++side.parts;
  auto forward = node.g(attr::Subgraph)->copy();
  while (forward->outputs().size() > static_cast<size_t>(node.i(attr::f_real_outputs)))
    forward->eraseOutput(forward->outputs().size() - 1);
  torch::jit::EliminateDeadCode(forward);
  InputMask all, some(forward->inputs().size(), false);
  for (const Value* input : forward->inputs()) all.push_back(mayHoldTensor(*input->type()));
  for (const int64_t input : computed) some[static_cast<size_t>(input)] = true;
  // A list counts as many as it has tensors.
  for (const int64_t input : computed) {
    const bool list = node.input(static_cast<size_t>(input))->type()->kind() == c10::TypeKind::ListType;
    side.gradients += list ? inputsOf(true).back().toTensorList().size() : 1;
  }
  const auto without = differentiatePiece(*forward, all);
  const auto with = differentiatePiece(*forward, some);
  if (!without || !with) return;
  side.pruned += without->gradient_inputs.size() - with->gradient_inputs.size();
  side.backward_nodes += opsOf(without->backward->block()) - opsOf(with->backward->block());
}

PruningSide measureStock(const std::shared_ptr<Graph>& graph, const PruningProgram& program) {
  const ProfilingModes modes;
  torch::jit::GraphExecutor executor(graph->copy(), "pruning");
  PruningSide side;
  // Run 1 profiles; the backward has a plan of its own, which profiles in the first backward of run 2.
  // Looking for needless gradients runs parts of the backward alone, which it must not profile: last.
  for (int run = 0; run < 5; ++run) {
    Stack stack = inputsOf(run == 0 ? program.profiled_flag : program.measured_flag);
    executor.run(stack);
    const auto plan = torch::jit::lastExecutedOptimizedGraph();
    if (run == 4) countNeedless(side, stack);
    if (run < 4) side.calls = backwardCalls(stack);
    if (run != 3) continue;
    forEachNode(plan->block(), [&](Node* node) {
      if (node->kind() == prim::DifferentiableGraph) addPlan(*node, side);
    });
  }
  return side;
}

}  // namespace

Result<std::vector<PruningRow>> pruningTable() {
  std::vector<PruningRow> rows;
  for (const PruningProgram& program : kPruningPrograms) {
    const auto unit = torch::jit::compile(program.source);
    const auto graph = torch::jit::toGraphFunction(unit->get_function("f")).graph()->copy();
    PruningRow row{program.name, program.what, {}, measureStock(graph, program), 0, 0};
    auto ours = measureOurs(graph, program);
    if (!ours) return tl::make_unexpected(ours.error());
    row.ours = *ours;
    Stack stack = inputsOf(program.measured_flag);
    torch::jit::Code code(graph, "eager");
    torch::jit::InterpreterState(code).run(stack);
    row.needless = NeedlessGradients(stack).left_out;
    row.eager_calls = backwardCalls(stack);
    for (PruningSide* side : {&row.ours, &row.stock}) {
      FAULTLINE_CHECK(side->left_out_then + side->computed <= row.needless, "the same ops, however they run");
      side->left_out_ahead = row.needless - side->left_out_then - side->computed;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace faultline
