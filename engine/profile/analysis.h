// One pass over a graph: everything that lookup, propagation and validation ask.
#pragma once
#include <memory>
#include <vector>

#include "engine/profile/evidence.h"
#include "engine/profile/flow.h"

namespace faultline::profile {

struct Answer {
  FactId fact = kNoFact;
  bool conditional = false;
  const Node* clone = nullptr;  // a clone that feeds the use and adds what evidence does not say any more
};

class Analysis {
 public:
  explicit Analysis(const Graph& graph, GradMode caller = GradMode::On);
  Analysis(const Analysis&) = delete;

  const FlowProgram& program() const { return program_; }
  const Objects& objects() const { return objects_; }
  const GradModes& modes() const { return modes_; }
  FactPool& pool() const { return pool_; }
  Reasons& reasons() const { return reasons_; }
  const std::vector<Observation>& observations() const { return observations_; }
  const std::vector<std::unique_ptr<Flow>>& flows() const { return flows_; }
  const Flow& flowFor(Fields field) const;
  bool isDead(int32_t control) const { return dead_[static_cast<size_t>(control)]; }

  // What is known of `value` where the step reads it.
  Answer answer(const Value* value, int32_t step) const;
  // The type of the known fields, nullptr when none is; made once per fact.
  const c10::TensorTypePtr& typeOf(FactId fact) const;

 private:
  void observe();
  void findDead();
  void buildFlows();
  std::vector<int32_t> writesFor(uint8_t fields) const;
  FactId withClone(FactId fact, const Value* value, int32_t root, int32_t step, const Node*& clone) const;

  FlowProgram program_;
  mutable Reasons reasons_;
  mutable FactPool pool_;
  GradModes modes_;
  Objects objects_;
  std::vector<Observation> observations_;
  std::vector<bool> dead_;
  std::vector<std::unique_ptr<Flow>> flows_;
  mutable std::unordered_map<FactId, c10::TensorTypePtr> types_;
};

}  // namespace faultline::profile
