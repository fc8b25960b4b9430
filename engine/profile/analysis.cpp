#include "engine/profile/analysis.h"

#include "engine/support/check.h"

namespace faultline::profile {
namespace {

// Tensors of other types carry no gradient, whatever is written into them.
bool carriesGradient(const Cell& dtype) {
  if (!dtype.known() || !dtype.covers) return true;
  const auto type = static_cast<c10::ScalarType>(dtype.value);
  return c10::isFloatingType(type) || c10::isComplexType(type);
}

bool mayAdd(const Cell& fact, const Cell& said) {
  return said.known() && !fact.speaks() && fact.state != CellState::Ended;
}

// Does a clone that says `said` know a field of which `fact` says nothing? Rarely: it was made from the
// answer.
bool mayAdd(const Fact& fact, const Fact& said) {
  if (mayAdd(fact.defined, said.defined) || mayAdd(fact.dtype, said.dtype) ||
      mayAdd(fact.device, said.device) || mayAdd(fact.requires_grad, said.requires_grad) ||
      mayAdd(fact.rank, said.rank)) {
    return true;
  }
  if (!fact.rank.known() || fact.sizes.size() != said.sizes.size()) return false;
  for (size_t i = 0; i < said.sizes.size(); ++i) {
    if (mayAdd(fact.sizes[i], said.sizes[i]) || mayAdd(fact.strides[i], said.strides[i])) return true;
  }
  return false;
}

}  // namespace

Analysis::Analysis(const Graph& graph, GradMode caller)
    : program_(graph), modes_(program_, caller), objects_(program_, modes_, reasons_) {
  readNodes();
  observe();
  findDead();
  buildFlows();
}

void Analysis::readNodes() {
  profile_node_at_.assign(program_.steps().size(), -1);
  ska::flat_hash_map<const c10::Type*, FactId> plain;
  const int32_t count = static_cast<int32_t>(program_.steps().size());
  for (int32_t i = 0; i < count; ++i) {
    const Step& step = program_.step(i);
    if (!step.profile) continue;
    ProfileNode read{step.node, i, marksOf(step.node)};
    const c10::TensorTypePtr type = read.marks.typed ? profiledType(step.node) : nullptr;
    if (type != nullptr) {
      read.unseen = isUnseen(read.marks, type);
      if (read.marks.fields) {
        read.literal = pool_.intern(literalFact(step.node, read.marks, type));
      } else {
        FactId& known = plain.emplace(type.get(), kNoFact).first->second;
        if (known == kNoFact) known = pool_.intern(literalFact(step.node, read.marks, type));
        read.literal = known;
      }
    }
    profile_node_at_[static_cast<size_t>(i)] = static_cast<int32_t>(profile_nodes_.size());
    profile_nodes_.push_back(read);
  }
}

const ProfileNode* Analysis::profileNode(const Node* node) const {
  if (!isProfile(node)) return nullptr;
  const int32_t step = program_.stepOf(node);
  return step < 0 ? nullptr : &profileNodeAt(step);
}

void Analysis::observe() {
  ska::flat_hash_map<uint64_t, FactId> plain;  // by what stands on the node, and grad mode
  observations_.reserve(profile_nodes_.size());
  for (const ProfileNode& read : profile_nodes_) {
    if (read.marks.clone) continue;
    const Ref ref = objects_.operands(read.step)[0].ref;
    if (ref.kind != RefKind::Tensor) continue;
    const GradMode mode = modes_.at(read.step);
    const auto fact = [&] {
      const c10::TensorTypePtr type = read.literal == kNoFact ? nullptr : profiledType(read.node);
      return pool_.intern(factOf(read.node, read.marks, type, mode, reasons_));
    };
    FactId seen = kNoFact;
    if (read.literal == kNoFact || read.marks.any()) {
      seen = fact();
    } else {
      const uint64_t key = static_cast<uint64_t>(read.literal) * 4 + static_cast<uint64_t>(mode);
      auto it = plain.find(key);
      if (it == plain.end()) it = plain.emplace(key, fact()).first;
      seen = it->second;
    }
    observations_.push_back(
        {ref.id, FlowProgram::before(read.step), program_.step(read.step).control, seen, read.node});
  }
}

// A block is dead if a profile node that runs whenever the block does never ran, and nothing in it was
// observed.
void Analysis::findDead() {
  const size_t count = program_.controls().size();
  dead_.assign(count, false);
  std::vector<bool> observed(count, false);
  for (const ProfileNode& read : profile_nodes_) {
    if (read.marks.clone || read.literal == kNoFact) continue;
    const size_t control = static_cast<size_t>(program_.step(read.step).control);
    if (read.unseen) {
      dead_[control] = true;
    } else {
      observed[control] = true;
    }
  }
  // Controls are numbered as they begin, so children come after their parents.
  for (size_t i = count; i-- > 1;) {
    if (observed[i]) observed[static_cast<size_t>(program_.control(static_cast<int32_t>(i)).parent)] = true;
  }
  for (size_t i = 0; i < count; ++i) dead_[i] = dead_[i] && !observed[i];
}

std::vector<int32_t> Analysis::writesFor(uint8_t fields) const {
  std::vector<int32_t> result;
  const std::vector<Write>& writes = objects_.writes();
  for (size_t i = 0; i < writes.size(); ++i) {
    const Write& write = writes[i];
    bool matters = write.everything || write.identity;
    if (fields & kShape) matters = matters || write.shape;
    if (fields & kGradient) {
      // A write raises requires_grad where grad mode may be on and something may bring it in; without
      // operands it only moves what views that were made without grad mode show.
      const bool raises = modes_.at(write.step) != GradMode::Off &&
                          (!write.brings_in.empty() ||
                           (write.root >= 0 && const_cast<Objects&>(objects_).hasUngradedView(write.root)));
      bool carries = true;
      if (write.root >= 0 && !flows_.empty()) {
        carries = carriesGradient(
            pool_[flowFor(kIdentity).answer(write.root, FlowProgram::before(write.step))].dtype);
      }
      matters = matters || write.lowers || (raises && carries);
    }
    if (matters) result.push_back(static_cast<int32_t>(i));
  }
  return result;
}

void Analysis::buildFlows() {
  const Flow::Context context{program_, objects_, modes_, reasons_, pool_, dead_};
  // Fields that no write tells apart share one flow; a graph without writes has one.
  bool identity = false;
  bool shape = false;
  for (const Write& write : objects_.writes()) {
    identity = identity || write.everything || write.identity;
    shape = shape || write.everything || write.identity || write.shape;
  }
  auto add = [&](uint8_t fields, const std::vector<int32_t>& writes) {
    flows_.push_back(std::make_unique<Flow>(context, fields, observations_, writes));
  };
  if (objects_.writes().empty()) {
    add(kAllFields, {});
    return;
  }
  if (!shape) {
    add(kIdentity | kShape, {});
  } else {
    add(kIdentity, identity ? writesFor(kIdentity) : std::vector<int32_t>{});
    add(kShape, writesFor(kShape));
  }
  add(kGradient, writesFor(kGradient));
}

const Flow& Analysis::flowFor(Fields field) const {
  for (const auto& flow : flows_) {
    if (flow->fields() & field) return *flow;
  }
  FAULTLINE_CHECK(false, "every field has a flow");
  return *flows_[0];
}

Answer Analysis::answer(int32_t step, size_t offset) const {
  Answer result;
  const ReadValue& operand = objects_.operands(step)[offset];
  const Ref ref = operand.ref;
  if (ref.kind != RefKind::Tensor) {
    result.fact = pool_.uniform(CellState::Nothing, reasons_.of(ReasonKind::NotTensor));
    return result;
  }
  const Pos at = FlowProgram::before(step);
  result.fact = flows_[0]->answer(ref.id, at);
  for (size_t i = 1; i < flows_.size(); ++i) {
    result.fact = pool_.overlay(result.fact, flows_[i]->answer(ref.id, at), flows_[i]->fields());
  }
  const bool may_have_clone = operand.feed >= 0 || program_.step(step).kind == StepKind::Call;
  if (const int32_t clone = may_have_clone ? cloneFor(step, offset) : -1; clone >= 0) {
    const FactId evidence = result.fact;
    result.fact = withClone(evidence, profileNodeAt(clone), ref.id, step);
    if (result.fact != evidence) result.clone = profileNodeAt(clone).node;
  }
  result.conditional = pool_.conditional(result.fact);
  // What came out of a join where another arm ran does not speak of the value that this arm would have given;
  // and no answer that the static type excludes is one.
  if (operand.refined && excludes(*program_.step(step).node->input(offset)->type(), pool_[result.fact])) {
    result.fact = pool_.uniform(CellState::Nothing, reasons_.of(ReasonKind::StaticType));
    result.conditional = false;
  }
  return result;
}

// The clone that answers a use, by its step: the next that feeds it; or, of an operand of a subgraph of which
// nothing but clones looks at the matching input inside, the first of these, since they stood at the
// operand's uses before a pass moved them in. -1: none.
int32_t Analysis::cloneFor(int32_t step, size_t offset) const {
  constexpr int kMostHops = 8;
  int32_t at = objects_.operands(step)[offset].feed;
  for (int hops = 0; hops < kMostHops && at >= 0; ++hops) {
    if (profileNodeAt(at).marks.clone) return at;
    at = objects_.operands(at)[0].feed;
  }
  if (at >= 0 || program_.step(step).kind != StepKind::Call) return -1;
  const Graph& subgraph = *program_.step(step).node->g(torch::jit::attr::Subgraph);
  int32_t first = -1;
  for (const torch::jit::Use& use : subgraph.inputs()[offset]->uses()) {
    const ProfileNode* inside = profileNode(use.user);
    if (inside == nullptr || !inside->marks.clone || use.user->owningBlock() != subgraph.block()) return -1;
    first = first < 0 ? inside->step : std::min(first, inside->step);
  }
  return first;
}

// A clone answers also when the evidence it was made from is gone. It never says more than that.
FactId Analysis::withClone(FactId fact, const ProfileNode& clone, int32_t root, int32_t step) const {
  if (clone.literal == kNoFact || !mayAdd(pool_[fact], pool_[clone.literal])) return fact;
  Fact said = pool_[clone.literal];
  Fact merged = pool_[fact];
  for (const Fields fields : {kIdentity, kShape, kGradient}) {
    const Flow& flow = flowFor(fields);
    if (flow.epoch(root, FlowProgram::before(clone.step)) != flow.epoch(root, FlowProgram::before(step)))
      keepOnly(said, kAllFields & ~fields);
  }
  bool added = false;
  auto take = [&](Cell& into, const Cell& from) {
    if (!into.speaks() && into.state != CellState::Ended && from.known()) {
      into = from;
      into.covers = !clone.marks.conditional;
      added = true;
    }
  };
  take(merged.defined, said.defined);
  take(merged.dtype, said.dtype);
  take(merged.device, said.device);
  take(merged.requires_grad, said.requires_grad);
  if (!merged.rank.speaks() && merged.rank.state != CellState::Ended && said.rank.known()) {
    take(merged.rank, said.rank);
    merged.sizes.assign(said.sizes.size(), Cell{});
    merged.strides.assign(said.strides.size(), Cell{});
  }
  if (merged.rank.known() && merged.sizes.size() == said.sizes.size()) {
    for (size_t i = 0; i < said.sizes.size(); ++i) {
      take(merged.sizes[i], said.sizes[i]);
      take(merged.strides[i], said.strides[i]);
    }
  }
  return added ? pool_.intern(merged) : fact;
}

const c10::TensorTypePtr& Analysis::typeOf(FactId fact) const {
  const FactId values = pool_.values(fact);
  if (types_.size() <= static_cast<size_t>(values)) types_.resize(pool_.size());
  auto& type = types_[static_cast<size_t>(values)];
  if (!type) type = profile::typeOf(pool_[values]);
  return *type;
}

}  // namespace faultline::profile
