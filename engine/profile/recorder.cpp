// The operator that records, and who listens to it: recorders by number, since graphs that hold a number may
// be copied and outlive them.
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/runtime/custom_operator.h>

#include "engine/autodiff/gradient.h"
#include "engine/ir/callers.h"
#include "engine/ir/walk.h"
#include "engine/support/check.h"
#include "faultline/ir.h"
#include "faultline/profile.h"
#include "faultline/recorder.h"

namespace faultline {

struct Recorder::State {
  int64_t number = 0;
  std::shared_ptr<Graph> graph;
  std::mutex mutex;  // guards `recording`
  Recording recording;

  size_t begin() {
    const std::lock_guard<std::mutex> lock(mutex);
    return beginLocked();
  }
  void see(std::optional<size_t> run, size_t site, const SeenTensor& seen) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!run && recording.runs.empty()) beginLocked();
    RecordedRun& into = recording.runs[run.value_or(recording.runs.size() - 1)];
    FAULTLINE_CHECK(site < into.sites.size(), "a recorded place of another graph");
    into.sites[site].merge(seen);
  }

 private:
  size_t beginLocked() {
    RecordedRun run;
    run.grad_mode = c10::GradMode::is_enabled();
    run.sites.resize(recording.sites.size());
    recording.runs.push_back(std::move(run));
    return recording.runs.size() - 1;
  }
};

namespace {

class Recorders {
 public:
  void add(const std::shared_ptr<Recorder::State>& state) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    state->number = next_++;
    states_[state->number] = state;
  }
  void remove(int64_t number) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    states_.erase(number);
  }
  std::shared_ptr<Recorder::State> find(int64_t number) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    auto it = states_.find(number);
    return it == states_.end() ? nullptr : it->second.lock();
  }

 private:
  std::shared_mutex mutex_;
  int64_t next_ = 0;
  std::unordered_map<int64_t, std::weak_ptr<Recorder::State>> states_;
};

Recorders& recorders() {
  // Never destroyed: a thread may still run an instrumented graph while the process ends.
  static auto* all = new Recorders;
  return *all;
}

std::vector<SeenField<int64_t>> seenDimensions(c10::IntArrayRef values) {
  std::vector<SeenField<int64_t>> fields;
  fields.reserve(values.size());
  for (int64_t value : values) fields.push_back({true, false, value});
  return fields;
}

SeenTensor seenValue(const c10::IValue& value) {
  SeenTensor seen;
  seen.times = 1;
  if (!value.isTensor()) {
    seen.absent = 1;
    return seen;
  }
  const at::Tensor& tensor = value.toTensor();
  seen.grad_mode.see(c10::GradMode::is_enabled());
  seen.defined.see(tensor.defined());
  if (!tensor.defined()) return seen;
  seen.dtype.see(tensor.scalar_type());
  seen.device.see(tensor.device());
  seen.rank.see(static_cast<size_t>(tensor.dim()));
  if (tensor.layout() == at::kStrided) {
    seen.sizes = seenDimensions(tensor.sizes());
    seen.strides = seenDimensions(tensor.strides());
  }
  seen.requires_grad.see(tensor.requires_grad());
  seen.stock_grad.see(tensor.requires_grad() && c10::GradMode::is_enabled());
  return seen;
}

c10::Symbol recordKind(bool optional) {
  static const auto tensor = c10::Symbol::fromQualString("faultline::record");
  static const auto maybe = c10::Symbol::fromQualString("faultline::record_optional");
  return optional ? maybe : tensor;
}

// A place is a recorder's number and a site, in one constant.
constexpr int kSiteBits = 32;

// The runs of this thread, innermost last.
thread_local std::vector<std::pair<const Recorder::State*, size_t>> active_runs;

void runRecord(torch::jit::Stack& stack) {
  const int64_t place = torch::jit::pop(stack).toInt();
  const int64_t number = place >> kSiteBits;
  const auto site = static_cast<size_t>(place & ((int64_t{1} << kSiteBits) - 1));
  const std::shared_ptr<Recorder::State> state = recorders().find(number);
  if (state == nullptr) return;
  std::optional<size_t> run;
  for (auto it = active_runs.rbegin(); it != active_runs.rend() && !run; ++it) {
    if (it->first == state.get()) run = it->second;
  }
  state->see(run, site, seenValue(torch::jit::peek(stack, 0, 1)));
}

// Honest about aliasing, or passes would take a write behind a place for one that nobody sees. The place is
// an input and no attribute: operators that read attributes are mixed up when two nodes share kind and arity.
const torch::jit::RegisterOperators registered_record(
    {torch::jit::Operator(
         "faultline::record(Tensor(a) x, int place) -> Tensor(a)",
         [](torch::jit::Stack& stack) { runRecord(stack); }, c10::AliasAnalysisKind::FROM_SCHEMA),
     torch::jit::Operator(
         "faultline::record_optional(Tensor(a)? x, int place) -> Tensor(a)?",
         [](torch::jit::Stack& stack) { runRecord(stack); }, c10::AliasAnalysisKind::FROM_SCHEMA)});

void insertRecordNode(const Use& use, int64_t number, size_t site) {
  Graph& graph = *use.user->owningGraph();
  const torch::jit::WithInsertPoint here(use.user);
  torch::jit::Value* value = use.user->input(use.offset);
  torch::jit::Value* place = graph.insertConstant((number << kSiteBits) | static_cast<int64_t>(site));
  const bool optional = value->type()->kind() == c10::TypeKind::OptionalType;
  Node* node = graph.insertNode(graph.create(recordKind(optional), {value, place}, 1));
  node->output()->setType(value->type());
  use.user->replaceInput(use.offset, node->output());
}

bool isLeftOver(const Node* node) {
  return node->kind() == torch::jit::prim::profile || node->kind() == torch::jit::prim::profile_ivalue;
}

}  // namespace

Result<Recorder> Recorder::instrument(const Graph& graph, RecorderOptions options) {
  auto state = std::make_shared<State>();
  state->graph = copyGraph(graph);
  detachFromCallers(*state->graph);
  recorders().add(state);
  Recorder recorder(state);
  const std::vector<Use> sites = profileSites(*state->graph);
  for (size_t k = 0; k < sites.size(); ++k) {
    const Node* user = sites[k].user;
    const bool inside = !options.inline_subgraphs && user->owningGraph() != state->graph.get();
    state->recording.sites.push_back({user->kind().toQualString(), sites[k].offset, inside});
    insertRecordNode(sites[k], state->number, k);
  }
  if (options.inline_subgraphs) inlineSubgraphs(*state->graph);
  removeProfileNodes(*state->graph);
  bool left_over = false;
  forEachNode(static_cast<const Graph&>(*state->graph).block(),
              [&](const Node* node) { left_over = left_over || isLeftOver(node); });
  if (left_over)
    return fail(ErrorKind::Invalid, "the graph has a profile node whose results nothing can replace");
  return recorder;
}

Recorder::Recorder(std::shared_ptr<State> state) : state_(std::move(state)) {}
Recorder::~Recorder() {
  if (state_ != nullptr) recorders().remove(state_->number);
}
Recorder::Recorder(Recorder&&) noexcept = default;
Recorder& Recorder::operator=(Recorder&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

const std::shared_ptr<Graph>& Recorder::graph() const { return state_->graph; }

Recording Recorder::recording() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->recording;
}

Recorder::Run::Run(const Recorder& recorder) : state_(recorder.state_) {
  active_runs.emplace_back(state_.get(), state_->begin());
}
Recorder::Run::~Run() { active_runs.pop_back(); }

}  // namespace faultline
