// Recordings as plain data, and as profile nodes.
#include "engine/autodiff/gradient.h"
#include "engine/profile/evidence.h"
#include "engine/profile/program.h"
#include "engine/support/check.h"
#include "faultline/recorder.h"

namespace faultline {
namespace {

namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

using profile::Cell;
using profile::CellState;
using profile::Fact;

void mergeDimensions(std::vector<SeenField<int64_t>>& into, const std::vector<SeenField<int64_t>>& from,
                     bool first) {
  if (first) {
    into = from;
    return;
  }
  if (into.size() != from.size()) {
    into.clear();
    return;
  }
  for (size_t i = 0; i < into.size(); ++i) into[i].merge(from[i]);
}

bool isOptionalTensor(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::OptionalType &&
         type->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType;
}

template <class T, class Encode>
Cell cellOf(const SeenField<T>& field, Encode encode) {
  Cell cell;
  cell.state = field.known() ? CellState::Value : CellState::Varies;
  if (field.known()) cell.value = static_cast<int64_t>(encode(field.value));
  return cell;
}

template <class T>
Cell cellOf(const SeenField<T>& field) {
  return cellOf(field, [](const T& value) { return value; });
}

// Dimensions as the type has them: as many as the rank says, those that were not followed vary.
std::vector<Cell> cellsOf(const std::vector<SeenField<int64_t>>& fields, size_t rank) {
  std::vector<Cell> cells(rank, Cell{CellState::Varies});
  for (size_t i = 0; i < rank && fields.size() == rank; ++i) cells[i] = cellOf(fields[i]);
  return cells;
}

Fact factOfSeen(const SeenTensor& seen) {
  Fact fact = profile::uniformFact(CellState::Varies);
  fact.defined = cellOf(seen.defined);
  if (seen.defined.known() && !seen.defined.value) return fact;
  fact.dtype = cellOf(seen.dtype);
  fact.device = cellOf(seen.device, profile::encodeDevice);
  fact.rank = cellOf(seen.rank);
  fact.requires_grad = cellOf(seen.requires_grad);
  if (fact.rank.known()) {
    fact.sizes = cellsOf(seen.sizes, seen.rank.value);
    fact.strides = cellsOf(seen.strides, seen.rank.value);
  }
  return fact;
}

// A 0 that was seen under a caller without grad mode says nothing about callers with it.
bool speaksOfGrad(const Recording& recording, size_t site) {
  for (const RecordedRun& run : recording.runs) {
    const SeenTensor& seen = run.sites[site];
    const bool is_one = seen.requires_grad.known() && seen.requires_grad.value;
    if (!run.grad_mode && seen.requires_grad.seen && !is_one) return false;
  }
  return true;
}

void writeSeen(Node* node, const Recording& recording, size_t site) {
  const SeenTensor seen = recording.merged(site);
  if (seen.times == 0) {
    node->ty_(attr::profiled_type, c10::TensorType::get());
    return;
  }
  Fact fact = factOfSeen(seen);
  const bool grad = speaksOfGrad(recording, site);
  if (!grad) fact.requires_grad = Cell{};
  c10::TensorTypePtr type = profile::typeOf(fact);
  if (type == nullptr) type = c10::TensorType::get();
  if (seen.defined.varies) type = type->withPossiblyUndefined();
  node->ty_(attr::profiled_type, type);
  if (recording.sites[site].inside) node->i_(profile::mark::inside(), 1);
  // Where grad mode was on all the time the node says what libtorch's own would.
  if (grad && !(seen.grad_mode.known() && seen.grad_mode.value)) node->i_(profile::mark::raw(), 1);
  if (!grad || profile::isUnseen(node)) {
    std::vector<std::string> spoken = {"defined", "dtype", "device", "rank", "sizes", "strides"};
    if (grad) spoken.emplace_back("requires_grad");
    node->ss_(profile::mark::fields(), spoken);
  }
}

}  // namespace

void SeenTensor::merge(const SeenTensor& other) {
  // The first defined tensor brings the dimensions, every later one is held against them.
  const bool first = !rank.seen;
  if (other.rank.seen) {
    rank.merge(other.rank);
    mergeDimensions(sizes, other.sizes, first);
    mergeDimensions(strides, other.strides, first);
    if (rank.varies) {
      sizes.clear();
      strides.clear();
    }
  }
  times += other.times;
  absent += other.absent;
  defined.merge(other.defined);
  dtype.merge(other.dtype);
  device.merge(other.device);
  requires_grad.merge(other.requires_grad);
  grad_mode.merge(other.grad_mode);
  stock_grad.merge(other.stock_grad);
}

SeenTensor Recording::merged(size_t site) const {
  SeenTensor all;
  for (const RecordedRun& run : runs) all.merge(run.sites[site]);
  return all;
}

std::vector<Use> profileSites(const Graph& graph) {
  std::vector<Use> sites;
  const profile::FlowProgram program(graph);
  for (const profile::Step& step : program.steps()) {
    if (step.kind == profile::StepKind::Close || step.kind == profile::StepKind::CallEnd ||
        step.kind == profile::StepKind::BlockBegin) {
      continue;
    }
    for (size_t i = 0; i < step.node->inputs().size(); ++i) {
      const c10::TypePtr& type = step.node->input(i)->type();
      if (type->kind() == c10::TypeKind::TensorType || isOptionalTensor(type)) {
        sites.emplace_back(const_cast<Node*>(step.node), i);
      }
    }
  }
  return sites;
}

std::shared_ptr<Graph> withProfileNodes(const Graph& graph, const Recording& recording) {
  auto copy = copyGraph(graph);
  const std::vector<Use> sites = profileSites(*copy);
  FAULTLINE_CHECK(sites.size() == recording.sites.size(), "the recording is of another graph");
  for (size_t k = 0; k < sites.size(); ++k) {
    Node* user = sites[k].user;
    if (user->kind() == prim::profile) continue;
    const SeenTensor seen = recording.merged(k);
    if (seen.times > 0 && seen.absent == seen.times) continue;
    torch::jit::Value* value = user->input(sites[k].offset);
    Node* node = user->owningGraph()->create(prim::profile, {value}, 1);
    node->output()->setType(value->type());
    writeSeen(node, recording, k);
    node->insertBefore(user);
    user->replaceInput(sites[k].offset, node->output());
  }
  return copy;
}

}  // namespace faultline
