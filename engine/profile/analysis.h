// One pass over a graph: everything that lookup, propagation and validation ask.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/profile/evidence.h"
#include "engine/profile/flow.h"

namespace faultline::profile {

struct Answer {
  FactId fact = kNoFact;
  bool conditional = false;
  const Node* clone = nullptr;  // a clone that adds what evidence does not say any more
};

// A profile node of the program, read once.
struct ProfileNode {
  const Node* node;
  int32_t step;
  Marks marks;
  bool unseen = false;
  FactId literal = kNoFact;  // what stands on it, unjudged; kNoFact without a type
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
  // Those with one input and one output, in program order.
  const std::vector<ProfileNode>& profileNodes() const { return profile_nodes_; }
  // At the step of one.
  const ProfileNode& profileNodeAt(int32_t step) const {
    return profile_nodes_[static_cast<size_t>(profile_node_at_[static_cast<size_t>(step)])];
  }
  // nullptr for a node that is none, or not in the program.
  const ProfileNode* profileNode(const Node* node) const;
  const Flow& flowFor(Fields field) const;
  bool isDead(int32_t control) const { return dead_[static_cast<size_t>(control)]; }

  // What is known of an input of the node at `step`, one that reads operands.
  Answer answer(int32_t step, size_t offset) const;
  // The type of the known fields, nullptr when none is; made once per fact.
  const c10::TensorTypePtr& typeOf(FactId fact) const;

 private:
  void readNodes();
  void observe();
  void findDead();
  void buildFlows();
  std::vector<int32_t> writesFor(uint8_t fields) const;
  int32_t cloneFor(int32_t step, size_t offset) const;
  FactId withClone(FactId fact, const ProfileNode& clone, int32_t root, int32_t step) const;

  FlowProgram program_;
  mutable Reasons reasons_;
  mutable FactPool pool_;
  GradModes modes_;
  Objects objects_;
  std::vector<ProfileNode> profile_nodes_;
  std::vector<int32_t> profile_node_at_;  // per step; -1: none
  std::vector<Observation> observations_;
  std::vector<bool> dead_;
  std::vector<std::unique_ptr<Flow>> flows_;
  mutable std::deque<std::optional<c10::TensorTypePtr>> types_;  // by the fact's values
};

}  // namespace faultline::profile
