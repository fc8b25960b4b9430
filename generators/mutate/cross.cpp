// Two cases become one.
#include <algorithm>
#include <unordered_map>

#include "engine/support/check.h"
#include "faultline/ir.h"
#include "generators/mutate/draft.h"
#include "generators/mutate/forecast.h"
#include "generators/mutate/mutate.h"
#include "generators/mutate/scene.h"
#include "generators/ops/limits.h"

namespace faultline {

using torch::jit::Node;
using torch::jit::Value;

namespace {

constexpr int cross_tries = 4;

// Runs of the longer case; the shorter one's last run goes on.
CaseRun joinedRun(const Case& a, const Case& b, size_t index, const std::vector<bool>& fed,
                  size_t own_inputs) {
  CaseRun run = a.runs[std::min(index, a.runs.size() - 1)];
  const CaseRun& other = b.runs[std::min(index, b.runs.size() - 1)];
  // Where an input of the second lies now.
  std::vector<size_t> moved(other.inputs.size());
  for (size_t i = 0, next = own_inputs; i < moved.size(); ++i) moved[i] = fed[i] ? 0 : next++;
  for (size_t i = 0; i < other.inputs.size(); ++i) {
    if (fed[i]) continue;
    InputSpec spec = other.inputs[i];
    if (spec.kind == InputSpec::Kind::SameAs) {
      // The tensor it shared may be fed from the first graph now.
      if (fed[spec.same_as]) {
        spec = InputSpec(other.inputs[spec.same_as]);
      } else {
        spec.same_as = moved[spec.same_as];
      }
    }
    run.inputs.push_back(std::move(spec));
  }
  if (run.backwards.empty() && run.grad_mode) run.backwards = other.backwards;
  for (BackwardSpec& phase : run.backwards) phase.output = std::min<size_t>(phase.output, 0);
  return run;
}

// Nodes whose results nobody needs, until the case is small enough.
void trim(Case& c) {
  torch::jit::Graph& graph = *c.graph;
  while (graph.outputs().size() > mutate_limits::max_returns) graph.eraseOutput(graph.outputs().size() - 1);
  std::vector<Node*> nodes = allNodes(graph);
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const OpRow* row = (*node)->hasUses() ? nullptr : rowOfNode(*node);
    if (row != nullptr && !row->mutates && nodes.size() > mutate_limits::max_nodes) (*node)->destroy();
  }
}

Case spliced(const Case& a, const Case& b, Choices& choices, uint32_t feed_percent) {
  Case made = cloneCase(a);
  markPlannedNodes(made);
  torch::jit::Graph& graph = *made.graph;
  const torch::jit::Graph& behind = *b.graph;
  std::unordered_map<Value*, Value*> mapped;
  std::vector<bool> fed(behind.inputs().size(), false);
  {
    Scene scene(made, choices, graph.return_node());
    FormReader reader(b, b.runs.front());
    reader.read();
    for (size_t i = 0; i < fed.size(); ++i) {
      Value* input = const_cast<Value*>(behind.inputs()[i]);
      std::vector<Value*> fitting;
      for (const Operand& operand : scene.tensors()) {
        bool tensor = input->type()->kind() == c10::TypeKind::TensorType;
        if (tensor && scene.formOf(operand.value).sameShape(reader.find(input)))
          fitting.push_back(operand.value);
      }
      fed[i] = !fitting.empty() && choices.flip(feed_percent);
      if (fed[i]) mapped[input] = fitting[choices.below(fitting.size())];
    }
  }
  size_t own_inputs = graph.inputs().size();
  for (size_t i = 0; i < fed.size(); ++i) {
    if (fed[i]) continue;
    Value* input = const_cast<Value*>(behind.inputs()[i]);
    mapped[input] = graph.addInput()->setType(input->type());
  }
  for (const Node* node : behind.nodes()) {
    Node* copy = graph.createClone(const_cast<Node*>(node), [&](Value* value) { return mapped.at(value); });
    copy->insertBefore(graph.return_node());
    for (size_t i = 0; i < node->outputs().size(); ++i)
      mapped[const_cast<Value*>(node->output(i))] = copy->output(i);
  }
  for (const Value* output : behind.outputs()) graph.registerOutput(mapped.at(const_cast<Value*>(output)));

  std::vector<CaseRun> runs;
  for (size_t i = 0; i < std::max(a.runs.size(), b.runs.size()); ++i) {
    runs.push_back(joinedRun(a, b, i, fed, own_inputs));
  }
  made.runs = std::move(runs);
  trim(made);
  renamePlannedNodes(made);
  if (made.plan.breaks == "none")
    made.plan.breaks = b.plan.breaks.rfind("after", 0) == 0 ? "every 3" : b.plan.breaks;
  if (b.plan.profile == "keep") made.plan.profile = "keep";
  repairCase(made);
  return made;
}

}  // namespace

Case crossCases(const Case& first, const Case& second, Choices& choices) {
  Forecast one = forecastCase(first), two = forecastCase(second);
  for (int i = 0; i < cross_tries; ++i) {
    // Fed by results that it did not expect, the second may throw: the last try leaves them apart.
    Case made = spliced(first, second, choices, i + 1 < cross_tries ? 50 : 0);
    bool small = made.graph->inputs().size() <= mutate_limits::max_inputs &&
                 allNodes(*made.graph).size() <= 2 * mutate_limits::max_nodes;
    Forecast after = forecastCase(made);
    if (!small || after.misfits > one.misfits + two.misfits || after.spoils > one.spoils + two.spoils)
      continue;
    made.expectations.clear();
    made.notes["profile"] = "edited";
    Result<void> verified = verifyGraph(*made.graph);
    FAULTLINE_CHECK(verified.has_value(), (verified ? "" : verified.error().str()) + "\n" + writeCase(made));
    Result<Case> read = readCase(writeCase(made));
    FAULTLINE_CHECK(read.has_value(), (read ? "" : read.error().str()) + "\n" + writeCase(made));
    return made;
  }
  return mutateCase(first, choices);
}

}  // namespace faultline
