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

}  // namespace

Analysis::Analysis(const Graph& graph, GradMode caller)
    : program_(graph), modes_(program_, caller), objects_(program_, modes_, reasons_) {
  observe();
  findDead();
  buildFlows();
}

void Analysis::observe() {
  // Most nodes of a graph share few types.
  std::map<std::tuple<const c10::Type*, GradMode>, FactId> plain;
  const int32_t count = static_cast<int32_t>(program_.steps().size());
  for (int32_t i = 0; i < count; ++i) {
    const Step& step = program_.step(i);
    if (step.kind != StepKind::Node || !isProfile(step.node) || isClone(step.node)) continue;
    const Ref ref = objects_.ref(step.node->input());
    if (ref.kind != RefKind::Tensor) continue;
    const GradMode mode = modes_.at(i);
    const c10::TensorTypePtr type = profiledType(step.node);
    const bool marked = type == nullptr || step.node->hasAttribute(mark::fields()) ||
                        step.node->hasAttribute(mark::inside()) || step.node->hasAttribute(mark::raw());
    FactId fact = kNoFact;
    if (!marked) {
      auto [it, fresh] = plain.try_emplace({type.get(), mode}, kNoFact);
      if (fresh) it->second = pool_.intern(factOf(step.node, mode, reasons_));
      fact = it->second;
    } else {
      fact = pool_.intern(factOf(step.node, mode, reasons_));
    }
    observations_.push_back({ref.id, FlowProgram::before(i), step.control, fact, step.node});
  }
}

// A block is dead if a profile node that runs whenever the block does never ran, and nothing in it was
// observed.
void Analysis::findDead() {
  const size_t count = program_.controls().size();
  dead_.assign(count, false);
  std::vector<bool> observed(count, false);
  const int32_t steps = static_cast<int32_t>(program_.steps().size());
  for (int32_t i = 0; i < steps; ++i) {
    const Step& step = program_.step(i);
    if (step.kind != StepKind::Node || !isProfile(step.node) || isClone(step.node)) continue;
    if (profiledType(step.node) == nullptr) continue;
    if (isUnseen(step.node)) {
      dead_[static_cast<size_t>(step.control)] = true;
    } else {
      observed[static_cast<size_t>(step.control)] = true;
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

Answer Analysis::answer(const Value* value, int32_t step) const {
  Answer result;
  const Ref ref = objects_.ref(value);
  if (ref.kind != RefKind::Tensor) {
    result.fact = pool_.uniform(CellState::Nothing, reasons_.of(ReasonKind::NotTensor));
    return result;
  }
  const Pos at = FlowProgram::before(step);
  result.fact = flows_[0]->answer(ref.id, at);
  for (size_t i = 1; i < flows_.size(); ++i) {
    result.fact = pool_.overlay(result.fact, flows_[i]->answer(ref.id, at), flows_[i]->fields());
  }
  result.fact = withClone(result.fact, value, ref.id, step, result.clone);
  result.conditional =
      anyCell(pool_[result.fact], kAllFields, [](const Cell& c) { return c.speaks() && !c.covers; });
  // What came out of a join where another arm ran does not speak of the value that this arm would have given; and
  // no answer that the static type excludes is one.
  if (excludes(*value->type(), pool_[result.fact])) {
    result.fact = pool_.uniform(CellState::Nothing, reasons_.of(ReasonKind::StaticType));
    result.conditional = false;
  }
  return result;
}

// A clone answers the uses it feeds, also when the evidence it was made from is gone. It never says more than
// that.
FactId Analysis::withClone(FactId fact, const Value* value, int32_t root, int32_t step,
                           const Node*& clone) const {
  const Value* feed = value;
  for (int hops = 0; hops < 8 && isProfile(feed->node()); ++hops) {
    const Node* node = feed->node();
    if (!isClone(node)) {
      feed = node->input();
      continue;
    }
    const int32_t at = program_.stepOf(node);
    if (at < 0) break;
    Fact said = literalFact(node);
    const bool covers = !node->hasAttribute(mark::conditional());
    Fact merged = pool_[fact];
    const auto fill = [&](uint8_t fields) {
      const Flow& flow = flowFor(static_cast<Fields>(fields));
      if (flow.epoch(root, FlowProgram::before(at)) != flow.epoch(root, FlowProgram::before(step)))
        keepOnly(said, kAllFields & ~fields);
    };
    fill(kIdentity);
    fill(kShape);
    fill(kGradient);
    bool added = false;
    auto take = [&](Cell& into, const Cell& from) {
      if (!into.speaks() && into.state != CellState::Ended && from.known()) {
        into = from;
        into.covers = covers;
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
    if (added) {
      clone = node;
      return pool_.intern(merged);
    }
    break;
  }
  return fact;
}

const c10::TensorTypePtr& Analysis::typeOf(FactId fact) const {
  auto [it, fresh] = types_.try_emplace(fact);
  if (fresh) it->second = profile::typeOf(pool_[fact]);
  return it->second;
}

}  // namespace faultline::profile
