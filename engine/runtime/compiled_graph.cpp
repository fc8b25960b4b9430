#include "engine/runtime/compiled_graph.h"

#include <algorithm>

#include <ATen/SequenceNumber.h>
#include <fmt/format.h>

#include "engine/ir/interpretable.h"
#include "engine/runtime/seam_node.h"
#include "engine/support/check.h"

namespace faultline {

using torch::jit::Stack;

namespace {

void gather(const std::vector<c10::IValue>& registers, const std::vector<Register>& from, Stack& stack) {
  stack.reserve(from.size());
  for (Register r : from) {
    stack.push_back(registers[r]);
  }
}

void scatter(Stack& stack, const std::vector<Register>& to, std::vector<c10::IValue>& registers) {
  FAULTLINE_CHECK(stack.size() == to.size(), "a part gives what it promised");
  for (size_t i = 0; i < to.size(); ++i) {
    registers[to[i]] = std::move(stack[i]);
  }
}

void drop(std::vector<c10::IValue>& registers, const std::vector<Register>& dead) {
  for (Register r : dead) {
    registers[r] = c10::IValue();
  }
}

// Looking must not change anything: grad_fn() of a view whose base was written to makes a new node, and
// throws for one made without grad mode.
compat::NodePtr nodeOf(const at::TensorBase& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta ? meta->grad_fn_ : compat::NodePtr();
}

// Nodes that eager ops made since `since` and that a value hangs on say when the piece's backward begins.
// Returns the last of them, or `last`.
compat::NodePtr watchEagerNodes(const c10::IValue& value, uint64_t since,
                                const std::shared_ptr<PieceRun>& run,
                                std::vector<torch::autograd::Node*>& watched, compat::NodePtr last) {
  auto watchNodeOf = [&](const at::TensorBase& tensor) {
    const compat::NodePtr node = nodeOf(tensor);
    if (!node || node->sequence_nr() < since || dynamic_cast<PieceNode*>(node.get())) {
      return;
    }
    if (std::find(watched.begin(), watched.end(), node.get()) == watched.end()) {
      watched.push_back(node.get());
      node->add_pre_hook(std::make_unique<BackwardBeginHook>(run));
    }
    if (!last || last->sequence_nr() < node->sequence_nr()) {
      last = node;
    }
  };
  auto watch = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return;
    }
    watchNodeOf(tensor);
    if (tensor.is_view()) {
      watchNodeOf(tensor._base());  // if it was written since, the view will hang on that
    }
  };
  if (value.isTensor()) {
    watch(value.toTensor());
  } else if (value.isList() || value.isTuple() || value.isGenericDict()) {
    value.visit([&](const c10::IValue& inner) {
      if (inner.isTensor()) {
        watch(inner.toTensor());
      }
      return false;
    });
  }
  return last;
}

// A seam's tensor without what it hangs on, as LastRun::nodes: the same for hooks, as long as its node is
// there.
class LooseSeam {
 public:
  LooseSeam(size_t seam, const at::Tensor& tensor)
      : seam_(seam),
        tensor_(tensor.getIntrusivePtr()),
        plain_(tensor.tensor_data()),
        node_(nodeOf(tensor)),
        output_nr_(tensor.output_nr()) {}

  size_t seam() const { return seam_; }
  // Undefined where nobody holds it and no gradient can come to it.
  at::Tensor tensor() const {
    if (auto held = tensor_.lock()) {
      return at::Tensor(std::move(held));
    }
    if (compat::NodePtr node = node_.lock()) {
      torch::autograd::impl::set_gradient_edge(plain_, {std::move(node), output_nr_});
      return plain_;
    }
    return {};
  }

 private:
  size_t seam_;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor_;
  at::Tensor plain_;
  compat::WeakNodePtr node_;
  uint32_t output_nr_;
};

}  // namespace

struct CompiledGraph::Impl::Running {
  std::vector<c10::IValue> values;
  std::shared_ptr<const std::vector<SeamHookEntry>> hooks;
  std::shared_ptr<LastRun> last = std::make_shared<LastRun>();
  std::vector<LooseSeam> loose;  // of programs that write
  Stack work;                    // kept from part to part for its memory
  FusedForward::Results fused;   // of pieces that come next

  void keep(size_t seam, const at::Tensor& tensor) {
    at::Tensor& newest = last->seams[seam];
    if (newest.defined()) {
      last->earlier.emplace_back(seam, std::move(newest));
    }
    newest = tensor;
  }
};

compat::NodePtr CompiledGraph::Impl::runPart(const RunnablePart& part, Running& running,
                                             const std::shared_ptr<PieceRun>& run) {
  if (running.fused.any()) {
    if (auto node = running.fused.give(part, running.work, run)) {
      return *node;
    }
    running.fused = {};
  }
  return part.run(running.work, run);
}

compat::NodePtr CompiledGraph::Impl::runSegment(const PlacedSegment& segment, Running& running,
                                                const std::shared_ptr<PieceRun>& run, bool& any_eager) {
  compat::NodePtr last;
  for (const PlacedPart& placed_part : segment.parts) {
    running.work.clear();
    gather(running.values, placed_part.inputs, running.work);
    if (auto node = runPart(*placed_part.part, running, run)) {
      last = std::move(node);
    } else {
      any_eager = true;
    }
    scatter(running.work, placed_part.outputs, running.values);
    drop(running.values, placed_part.last_used);
  }
  return last;
}

void CompiledGraph::Impl::runAsWritten(const PlacedSegment& segment, std::vector<c10::IValue>& registers) {
  Stack stack;
  gather(registers, segment.inputs, stack);
  torch::jit::InterpreterState(torch::jit::Code(interpretable(segment.as_written()), "piece")).run(stack);
  scatter(stack, segment.outputs, registers);
}

void CompiledGraph::Impl::runFusedForwardAt(size_t k, Running& running) {
  if (running.fused.goesOnWith(k)) {
    return;
  }
  running.fused = {};
  if (auto it = fused.find(k); it != fused.end()) {
    running.fused = it->second.run(running.values);
  }
}

compat::NodePtr CompiledGraph::Impl::runPiece(size_t k, Running& running) {
  const PlacedPiece& piece = placed[k];
  std::vector<c10::IValue>& registers = running.values;
  runFusedForwardAt(k, running);
  const bool forward_ran = running.fused.any();
  const uint64_t event =
      forward_ran ? timeline->forward(static_cast<int>(k), running.fused.begin(k), running.fused.end(k))
                  : timeline->begin(TimelineEvent::What::Forward, static_cast<int>(k));
  auto piece_run = std::make_shared<PieceRun>(timeline, static_cast<int>(k), event);
  const uint64_t first_number = at::sequence_number::peek();
  compat::WeakNodePtr last{compat::NodePtr()};  // as LastRun::nodes
  bool any_eager = false;
  for (const PlacedSegment& segment : piece.segments) {
    try {
      if (auto node = runSegment(segment, running, piece_run, any_eager)) {
        last = compat::WeakNodePtr(node);
      }
    } catch (...) {
      // Parts may stand in another order than the ops, and formulas have forwards of their own: what is
      // thrown to the caller is what the ops as written throw, and it is thrown from a state they could have
      // left.
      if (!segment.as_written) {
        throw;
      }
      any_eager = true;
      running.fused = {};
      runAsWritten(segment, registers);
      ++reruns;
    }
    drop(registers, segment.last_used);
  }
  if (!forward_ran) {
    timeline->end(event);
  }
  compat::NodePtr last_alive = last.lock();
  std::vector<torch::autograd::Node*> watched;
  for (size_t i = 0; any_eager && i < piece.outputs.size(); ++i) {
    const Register r = piece.outputs[i];
    last_alive = watchEagerNodes(registers[r], first_number, piece_run, watched, std::move(last_alive));
  }
  return last_alive;
}

// Hooks of a seam fire before its producer, and that is the whole piece: a seam whose node is not the first
// of its piece to run backward gets one that is.
void CompiledGraph::Impl::gateSeams(size_t k, const compat::NodePtr& first,
                                    std::vector<c10::IValue>& registers) {
  if (!at::GradMode::is_enabled()) {
    return;
  }
  std::vector<std::pair<at::Tensor, at::Tensor>> gated;
  for (size_t s : placed[k].seams) {
    const Seam& seam = seams[s];
    if (seam.irreplaceable || !registers[seam.at].isTensor()) {
      continue;
    }
    const at::Tensor tensor = registers[seam.at].toTensor();
    const compat::NodePtr node = tensor.defined() ? nodeOf(tensor) : compat::NodePtr();
    if (!node || node == first) {
      continue;
    }
    auto same = std::find_if(gated.begin(), gated.end(),
                             [&](const auto& pair) { return pair.first.is_same(tensor); });
    if (same == gated.end()) {
      same = gated.insert(same, {tensor, behindSeamNode(tensor)});
    }
    registers[seam.at] = same->second;
  }
}

void CompiledGraph::Impl::runPlaced(size_t k, Running& running) {
  std::vector<c10::IValue>& values = running.values;
  {
    const compat::NodePtr first = runPiece(k, running);
    running.last->nodes[k] = compat::WeakNodePtr(first);
    gateSeams(k, first, values);
  }
  for (size_t s : placed[k].seams) {
    const c10::IValue& value = values[seams[s].at];
    if (!value.isTensor() || !value.toTensor().defined()) {
      continue;
    }
    if (writes && nodeOf(value.toTensor())) {
      running.loose.emplace_back(s, value.toTensor());
    } else {
      running.keep(s, value.toTensor());
    }
  }
  if (running.hooks) {
    for (const SeamHookEntry& entry : *running.hooks) {
      const Seam& seam = *entry.seam;
      if (seam.piece == k && values[seam.at].isTensor() && values[seam.at].toTensor().requires_grad()) {
        values[seam.at].toTensor().register_hook(
            [hook = entry.hook](const at::Tensor& grad) { return hook(grad); });
      }
    }
  }
  drop(values, placed[k].last_used);
}

void CompiledGraph::Impl::run(Stack& stack) {
  TORCH_CHECK(stack.size() >= graph_inputs, "the graph takes ", graph_inputs, " inputs; the stack holds ",
              stack.size());
  setLastRun(nullptr);  // frees what the run before kept
  Running running;
  running.values.resize(registers);
  for (size_t i = 0; i < graph_inputs; ++i) {
    running.values[i] = std::move(stack[stack.size() - graph_inputs + i]);
  }
  stack.resize(stack.size() - graph_inputs);
  {
    std::lock_guard<std::mutex> lock(hooks_mutex);
    running.hooks = hooks;
  }
  running.last->nodes.assign(placed.size(), compat::WeakNodePtr(compat::NodePtr()));
  running.last->seams.resize(seams.size());
  if (steps.empty()) {
    for (size_t k = 0; k < placed.size(); ++k) {
      runPlaced(k, running);
    }
  } else {
    runSteps(steps, running.values, [&](size_t k) { runPlaced(k, running); });
  }
  for (const RunValue& output : outputs) {
    stack.push_back(output.at ? running.values[*output.at] : output.constant);
  }
  for (const LooseSeam& seam : running.loose) {
    if (const at::Tensor tensor = seam.tensor(); tensor.defined()) {
      running.keep(seam.seam(), tensor);
    }
  }
  setLastRun(std::move(running.last));
}

const Seam* CompiledGraph::Impl::findSeam(const std::string& name) const {
  auto it = std::lower_bound(seams.begin(), seams.end(), name,
                             [](const Seam& seam, const std::string& wanted) { return seam.name < wanted; });
  return it != seams.end() && it->name == name ? &*it : nullptr;
}

std::shared_ptr<const CompiledGraph::Impl::LastRun> CompiledGraph::Impl::lastRun() {
  std::lock_guard<std::mutex> lock(last_runs_mutex);
  auto it = last_runs.find(std::this_thread::get_id());
  return it == last_runs.end() ? nullptr : it->second;
}

void CompiledGraph::Impl::setLastRun(std::shared_ptr<const LastRun> run) {
  std::lock_guard<std::mutex> lock(last_runs_mutex);
  last_runs[std::this_thread::get_id()].swap(run);
}  // what it held before is freed outside the lock: a whole autograd graph may hang on it

CompiledGraph::CompiledGraph(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

void CompiledGraph::run(Stack& stack) const { impl_->run(stack); }
const std::vector<CompiledPiece>& CompiledGraph::pieces() const { return impl_->pieces; }
Timeline& CompiledGraph::timeline() const { return *impl_->timeline; }
std::shared_ptr<Graph> CompiledGraph::stitchedGraph() const { return impl_->stitch(); }

Result<void> CompiledGraph::onSeam(const std::string& name, SeamHook hook) {
  const Seam* found = impl_->findSeam(name);
  if (!found) {
    std::string known;
    for (const Seam& seam : impl_->seams) {
      known += (known.empty() ? "" : ", ") + seam.name;
    }
    return fail(ErrorKind::Invalid, fmt::format("'{}' does not cross a cut; what does: {}", name,
                                                known.empty() ? "nothing" : known));
  }
  if (!found->refusal.empty()) {
    return fail(ErrorKind::Unsupported, found->refusal);
  }
  std::lock_guard<std::mutex> lock(impl_->hooks_mutex);
  auto next = impl_->hooks ? std::make_shared<std::vector<Impl::SeamHookEntry>>(*impl_->hooks)
                           : std::make_shared<std::vector<Impl::SeamHookEntry>>();
  next->push_back({found, std::move(hook)});
  impl_->hooks = std::move(next);
  return {};
}

at::Tensor CompiledGraph::seam(const std::string& name) const {
  const auto last = impl_->lastRun();
  const Seam* found = impl_->findSeam(name);
  return last && found ? last->seams[static_cast<size_t>(found - impl_->seams.data())] : at::Tensor();
}

std::vector<at::Tensor> CompiledGraph::seamValues(const std::string& name) const {
  std::vector<at::Tensor> values;
  const auto last = impl_->lastRun();
  const Seam* found = impl_->findSeam(name);
  if (last && found) {
    const auto at = static_cast<size_t>(found - impl_->seams.data());
    for (const auto& [seam, tensor] : last->earlier) {
      if (seam == at) values.push_back(tensor);
    }
    if (last->seams[at].defined()) values.push_back(last->seams[at]);
  }
  return values;
}

torch::autograd::Node* CompiledGraph::pieceNode(size_t k) const {
  auto last = impl_->lastRun();
  return last && k < last->nodes.size() ? last->nodes[k].lock().get() : nullptr;
}

}  // namespace faultline
