#include "engine/graph_break/step_order.h"

#include <algorithm>
#include <set>

#include <torch/csrc/jit/ir/constants.h>

namespace faultline {

namespace {

class StepOrder {
 public:
  StepOrder(const WorkingCopy& work, const std::vector<size_t>& ends,
            const std::function<Register(const Value*)>& register_of)
      : work_(work), ends_(ends), register_of_(register_of) {}

  std::vector<RunStep> of(const torch::jit::Block* block) const {
    std::vector<RunStep> steps;
    for (const Node* node : block->nodes()) {
      const size_t i = work_.index.at(node);
      if (work_.opened[i]) {
        steps.push_back(opened(node));
      } else if (!work_.constant[i]) {
        const auto piece =
            static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
        if (steps.empty() || steps.back().opened || steps.back().piece != piece) {
          steps.emplace_back().piece = piece;
        }
      }
    }
    return steps;
  }

 private:
  template <class Values>
  std::vector<RunValue> operands(const Values& values) const {
    std::vector<RunValue> result;
    for (const Value* value : values) {
      auto constant = torch::jit::toIValue(value);
      constant ? result.push_back({std::nullopt, *constant}) : result.push_back({register_of_(value), {}});
    }
    return result;
  }

  RunStep opened(const Node* node) const {
    RunStep step;
    step.opened = node;
    step.operands = operands(node->inputs());
    for (const torch::jit::Block* block : node->blocks()) {
      for (const Value* input : block->inputs()) {
        step.given.push_back(register_of_(input));
      }
      step.arms.push_back({of(block), operands(block->outputs()), {}});
    }
    for (const Value* output : node->outputs()) {
      step.outputs.push_back(register_of_(output));
    }
    return step;
  }

  const WorkingCopy& work_;
  const std::vector<size_t>& ends_;
  const std::function<Register(const Value*)>& register_of_;
};

class LastUses {
 public:
  LastUses(std::vector<PlacedPiece>& pieces, std::vector<bool>& kept) : pieces_(pieces), kept_(kept) {}

  void visit(PlacedPiece& piece) {
    last(piece.outputs, piece.last_used);  // for the watch
    for (size_t s = piece.segments.size(); s-- > 0;) {
      PlacedSegment& segment = piece.segments[s];
      // It may have to be run again as written.
      last(segment.inputs, segment.last_used);
      last(segment.outputs, segment.last_used);
      for (size_t p = segment.parts.size(); p-- > 0;) {
        last(segment.parts[p].inputs, segment.parts[p].last_used);
        last(segment.parts[p].outputs, segment.parts[p].last_used);
      }
    }
  }

  void visit(std::vector<RunStep>& steps) {
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      step->opened ? visit(*step) : visit(pieces_[step->piece]);
    }
  }

 private:
  // What an arm reads from outside is read in the next round too, and by the other arm.
  void visit(RunStep& step) {
    last(step.outputs, step.last_used);
    std::set<Register> used, made;
    collect(step, used, made);
    std::vector<Register> from_outside;
    std::set_difference(used.begin(), used.end(), made.begin(), made.end(), std::back_inserter(from_outside));
    last(from_outside, step.last_used);
    for (RunArm& arm : step.arms) {
      std::vector<Register> results;
      addRegisters(arm.results, results);
      last(results, arm.last_used);
      visit(arm.steps);
    }
  }

  static void addRegisters(const std::vector<RunValue>& operands, std::vector<Register>& registers) {
    for (const RunValue& operand : operands) {
      if (operand.at) {
        registers.push_back(*operand.at);
      }
    }
  }

  void collect(const RunStep& step, std::set<Register>& used, std::set<Register>& made) const {
    std::vector<Register> read;
    if (!step.opened) {
      for (const PlacedSegment& segment : pieces_[step.piece].segments) {
        used.insert(segment.inputs.begin(), segment.inputs.end());
        for (const PlacedPart& part : segment.parts) {
          used.insert(part.inputs.begin(), part.inputs.end());
          made.insert(part.outputs.begin(), part.outputs.end());
        }
      }
      return;
    }
    addRegisters(step.operands, read);
    made.insert(step.given.begin(), step.given.end());
    for (const RunArm& arm : step.arms) {
      addRegisters(arm.results, read);
      for (const RunStep& inner : arm.steps) {
        collect(inner, used, made);
      }
    }
    used.insert(read.begin(), read.end());
    made.insert(step.outputs.begin(), step.outputs.end());
  }

  void last(const std::vector<Register>& used, std::vector<Register>& last_used) {
    for (Register r : used) {
      if (!kept_[r]) {
        kept_[r] = true;
        last_used.push_back(r);
      }
    }
  }

  std::vector<PlacedPiece>& pieces_;
  std::vector<bool>& kept_;
};

}  // namespace

std::vector<RunStep> stepsOf(const WorkingCopy& work, const std::vector<size_t>& ends,
                             const std::function<Register(const Value*)>& registerOf) {
  return StepOrder(work, ends, registerOf).of(work.graph->block());
}

void findLastUses(std::vector<PlacedPiece>& pieces, std::vector<RunStep>& steps, std::vector<bool>& kept) {
  LastUses uses(pieces, kept);
  if (!steps.empty()) {
    uses.visit(steps);
    return;
  }
  for (size_t k = pieces.size(); k-- > 0;) {
    uses.visit(pieces[k]);
  }
}

}  // namespace faultline
