#include "engine/graph_break/stitch.h"

#include "engine/autodiff/differentiability.h"
#include "engine/support/check.h"

namespace faultline {

namespace attr = torch::jit::attr;

namespace {

std::vector<int64_t> integers(const std::vector<size_t>& values) { return {values.begin(), values.end()}; }

void packGradient(const torch::jit::Gradient& gradient, Node* node) {
  node->g_(attr::Subgraph, gradient.f)
      ->g_(attr::ReverseSubgraph, gradient.df)
      ->i_(attr::f_real_outputs, static_cast<int64_t>(gradient.f_real_outputs))
      ->is_(attr::df_input_vjps, integers(gradient.df_input_vjps))
      ->is_(attr::df_input_captured_inputs, integers(gradient.df_input_captured_inputs))
      ->is_(attr::df_input_captured_outputs, integers(gradient.df_input_captured_outputs))
      ->is_(attr::df_output_vjps, integers(gradient.df_output_vjps));
}

class Stitcher {
 public:
  Stitcher(const WorkingCopy& work, bool as_written)
      : as_written_(as_written), work_(work), graph_(std::make_shared<Graph>()) {
    for (Value* input : work.graph->inputs()) {
      Value* copy = graph_->addInput()->setType(work.input_types[input->offset()]);
      if (input->hasDebugName()) {
        copy->setDebugName(input->debugName());
      }
      map_[input] = copy;
    }
  }

  // By register: parts know no values of the working copy.
  void addPart(const PlacedPart& placed, const std::string& name, std::vector<Value*>& registers) {
    const RunnablePart& part = *placed.part;
    const bool with_gradient = !as_written_ && part.compiled() && part.expectedVariant();
    auto gradient = with_gradient ? rawGradient(*part.graph(), part.expected())
                                  : fail(ErrorKind::Unsupported, "runs as written");
    if (gradient) {
      std::vector<Value*> inputs;
      for (Register r : placed.inputs) {
        inputs.push_back(registers[r]);
      }
      Node* node = graph_->create(torch::jit::prim::DifferentiableGraph, inputs, placed.outputs.size());
      graph_->block()->appendNode(node);
      node->s_(attr::name, name);
      packGradient(*gradient, node);
      for (size_t i = 0; i < placed.outputs.size(); ++i) {
        node->outputs()[i]->setType(part.graph()->outputs()[i]->type());
        registers[placed.outputs[i]] = node->outputs()[i];
      }
      return;
    }
    std::unordered_map<Value*, Value*> map;
    for (size_t i = 0; i < placed.inputs.size(); ++i) {
      map[part.graph()->inputs()[i]] = registers[placed.inputs[i]];
    }
    for (Node* node : part.graph()->nodes()) {
      as_written_ = as_written_ || changesMode(node);
      Node* copy = graph_->createClone(node, [&map](Value* value) { return map.at(value); });
      graph_->block()->appendNode(copy);
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        map[node->outputs()[i]] = copy->outputs()[i];
      }
    }
    for (size_t i = 0; i < placed.outputs.size(); ++i) {
      registers[placed.outputs[i]] = map.at(part.graph()->outputs()[i]);
    }
  }

  std::shared_ptr<Graph> finish(const std::vector<CompiledGraph::Impl::Output>& outputs,
                                const std::vector<Value*>& registers) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].at) {
        graph_->registerOutput(registers[*outputs[i].at]);
        continue;
      }
      Node* constant =
          graph_->createClone(work_.graph->outputs()[i]->node(), [](Value* value) { return value; });
      graph_->block()->appendNode(constant);
      graph_->registerOutput(constant->output());
    }
    return graph_;
  }

  const std::shared_ptr<Graph>& graph() const { return graph_; }

 private:
  // A DifferentiableGraph of libtorch's ignores the grad mode of the moment, and works on inputs cut off from
  // what they share memory with: behind a change of mode, and in a graph that writes, parts stand as written.
  bool as_written_;
  const WorkingCopy& work_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<Value*, Value*> map_;
};

}  // namespace

std::shared_ptr<Graph> stitch(const WorkingCopy& work, const CompiledGraph::Impl& impl) {
  Stitcher stitcher(work, impl.writes);
  std::vector<Value*> registers(impl.registers, nullptr);
  for (size_t i = 0; i < impl.graph_inputs; ++i) {
    registers[i] = stitcher.graph()->inputs()[i];
  }
  for (size_t k = 0; k < impl.placed.size(); ++k) {
    size_t compiled = 0, number = 0;
    for (const PiecePart& part : impl.pieces[k].parts) {
      compiled += part.compiled ? 1 : 0;
    }
    for (const PlacedSegment& segment : impl.placed[k].segments) {
      for (const PlacedPart& part : segment.parts) {
        std::string name = "piece" + std::to_string(k);
        if (part.part->compiled() && compiled > 1) {
          name += "_" + std::to_string(number++);
        }
        stitcher.addPart(part, name, registers);
      }
    }
  }
  return stitcher.finish(impl.outputs, registers);
}

}  // namespace faultline
