#include "engine/graph_break/stitch.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <c10/core/DefaultDtype.h>

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

bool isRealDtype(at::ScalarType dtype) { return dtype == at::kFloat || dtype == at::kDouble; }

// The one that the formulas of the graph's parts are taken to meet: of the first input that says, else the
// default one.
at::ScalarType floatingDtype(const std::vector<c10::TypePtr>& input_types) {
  for (const c10::TypePtr& type : input_types) {
    const auto tensor = type->cast<c10::TensorType>();
    if (tensor && tensor->scalarType() && isRealDtype(*tensor->scalarType())) {
      return *tensor->scalarType();
    }
  }
  return c10::get_default_dtype_as_scalartype();
}

// False: an input is known to be what the formulas are not for. Integers divided give the default dtype.
bool mayFitFormulas(const std::vector<Value*>& inputs, at::ScalarType dtype) {
  return std::all_of(inputs.begin(), inputs.end(), [&](const Value* input) {
    const auto type = input->type()->cast<c10::TensorType>();
    if (!type || !type->scalarType() || *type->scalarType() == dtype) return true;
    return c10::isIntegralType(*type->scalarType(), /*includeBool=*/true) &&
           dtype == c10::get_default_dtype_as_scalartype();
  });
}

// An input that only lends its sizes gets no gradient in eager, and none from a node that does not know it.
InputMask reachingAnOutput(const RunnablePart& part) {
  const auto& reaching = part.expectedVariant()->gradient.reaching;
  InputMask reached(part.expected().size(), false);
  for (size_t o = 0; o < part.graph()->outputs().size(); ++o) {
    for (size_t i = 0; i < reached.size(); ++i) {
      reached[i] = reached[i] || reaching[o][i];
    }
  }
  return reached;
}

class Stitcher {
 public:
  Stitcher(const WorkingCopy& work, bool as_written)
      : as_written_(as_written),
        dtype_(floatingDtype(work.input_types)),
        work_(work),
        graph_(std::make_shared<Graph>()),
        block_(graph_->block()) {
    for (Value* input : work.graph->inputs()) {
      Value* copy = graph_->addInput()->setType(work.input_types[input->offset()]);
      if (input->hasDebugName()) {
        copy->setDebugName(input->debugName());
      }
    }
  }

  // By register: parts know no values of the working copy.
  void addPart(const PlacedPart& placed, const std::string& name, std::vector<Value*>& registers) {
    const RunnablePart& part = *placed.part;
    std::vector<Value*> inputs;
    for (Register r : placed.inputs) {
      inputs.push_back(registers[r]);
    }
    const bool with_gradient =
        !as_written_ && part.compiled() && part.expectedVariant() && mayFitFormulas(inputs, dtype_);
    auto gradient = with_gradient ? rawGradient(*part.graph(), reachingAnOutput(part))
                                  : fail(ErrorKind::Unsupported, "runs as written");
    if (!gradient) {
      const std::vector<Value*> made = addAsWritten(part, inputs, block_);
      for (size_t i = 0; i < placed.outputs.size(); ++i) {
        registers[placed.outputs[i]] = made[i];
      }
      return;
    }
    Node* choice = block_->appendNode(graph_->create(torch::jit::prim::If, {addGuard(part, inputs)}, 0));
    torch::jit::Block* fast = choice->addBlock();
    torch::jit::Block* slow = choice->addBlock();
    Node* node = graph_->create(torch::jit::prim::DifferentiableGraph, inputs, placed.outputs.size());
    fast->appendNode(node);
    node->s_(attr::name, name);
    packGradient(*gradient, node);
    const std::vector<Value*> made = addAsWritten(part, inputs, slow);
    for (size_t i = 0; i < placed.outputs.size(); ++i) {
      const c10::TypePtr& type = part.graph()->outputs()[i]->type();
      node->outputs()[i]->setType(type);
      fast->registerOutput(node->outputs()[i]);
      slow->registerOutput(made[i]);
      registers[placed.outputs[i]] = choice->addOutput()->setType(type);
    }
  }

  // `addPiece(k)` adds a piece's parts.
  void addOpened(const RunStep& step, std::vector<Value*>& registers,
                 const std::function<void(size_t)>& addPiece) {
    std::vector<Value*> operands;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      operands.push_back(operand(step.operands[i], step.opened->input(i), registers));
    }
    Node* node = block_->appendNode(graph_->create(step.opened->kind(), operands, 0));
    for (size_t a = 0; a < step.arms.size(); ++a) {
      const torch::jit::Block* original = step.opened->blocks()[a];
      torch::jit::Block* outside = std::exchange(block_, node->addBlock());
      for (size_t i = 0; i < original->inputs().size(); ++i) {
        registers[step.given[i]] = block_->addInput()->setType(original->inputs()[i]->type());
      }
      addSteps(step.arms[a].steps, registers, addPiece);
      for (size_t i = 0; i < original->outputs().size(); ++i) {
        block_->registerOutput(operand(step.arms[a].results[i], original->outputs()[i], registers));
      }
      block_ = outside;
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      registers[step.outputs[i]] = node->addOutput()->setType(step.opened->output(i)->type());
    }
  }

  void addSteps(const std::vector<RunStep>& steps, std::vector<Value*>& registers,
                const std::function<void(size_t)>& addPiece) {
    for (const RunStep& step : steps) {
      step.opened ? addOpened(step, registers, addPiece) : addPiece(step.piece);
    }
  }

  std::shared_ptr<Graph> finish(const std::vector<RunValue>& outputs, const std::vector<Value*>& registers) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      graph_->registerOutput(operand(outputs[i], work_.graph->outputs()[i], registers));
    }
    return graph_;
  }

  const std::shared_ptr<Graph>& graph() const { return graph_; }

 private:
  Value* operand(const RunValue& from, const Value* original, const std::vector<Value*>& registers) {
    if (from.at) {
      return registers[*from.at];
    }
    Node* constant =
        graph_->createClone(const_cast<Node*>(original->node()), [](Value* value) { return value; });
    return block_->appendNode(constant)->outputs()[original->offset()];
  }

  // Whether the inputs are what the formulas were derived for and grad mode is on: prim::TypeCheck sees no
  // requires_grad without it.
  Value* addGuard(const RunnablePart& part, const std::vector<Value*>& inputs) {
    std::vector<Value*> tensors;
    std::vector<c10::TypePtr> types;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (const auto type = inputs[i]->type()->cast<c10::TensorType>()) {
        tensors.push_back(inputs[i]);
        types.push_back(c10::TensorType::create(
            type->scalarType() ? *type->scalarType() : dtype_, std::nullopt, c10::SymbolicShape(),
            c10::VaryingShape<c10::Stride>{}, static_cast<bool>(part.expected()[i]), false));
      }
    }
    Node* check =
        block_->appendNode(graph_->create(torch::jit::prim::TypeCheck, tensors, tensors.size() + 1));
    for (size_t i = 0; i < types.size(); ++i) {
      check->outputs()[i]->setType(types[i]);
    }
    check->tys_(attr::types, std::move(types));
    return check->outputs().back()->setType(c10::BoolType::get());
  }

  std::vector<Value*> addAsWritten(const RunnablePart& part, const std::vector<Value*>& inputs,
                                   torch::jit::Block* block) {
    std::unordered_map<Value*, Value*> map;
    for (size_t i = 0; i < inputs.size(); ++i) {
      map[part.graph()->inputs()[i]] = inputs[i];
    }
    for (Node* node : part.graph()->nodes()) {
      as_written_ = as_written_ || changesMode(node);
      Node* copy = graph_->createClone(node, [&map](Value* value) { return map.at(value); });
      block->appendNode(copy);
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        map[node->outputs()[i]] = copy->outputs()[i];
      }
    }
    std::vector<Value*> outputs;
    for (Value* output : part.graph()->outputs()) {
      outputs.push_back(map.at(output));
    }
    return outputs;
  }

  // A DifferentiableGraph of libtorch's works on inputs cut off from what they share memory with: in a graph
  // that writes, and behind a change of mode, parts stand as written.
  bool as_written_;
  at::ScalarType dtype_;
  const WorkingCopy& work_;
  std::shared_ptr<Graph> graph_;
  torch::jit::Block* block_;  // at the end of which comes what is added
};

}  // namespace

std::shared_ptr<Graph> stitch(const WorkingCopy& work, const CompiledGraph::Impl& impl) {
  Stitcher stitcher(work, impl.writes);
  std::vector<Value*> registers(impl.registers, nullptr);
  for (size_t i = 0; i < impl.graph_inputs; ++i) {
    registers[i] = stitcher.graph()->inputs()[i];
  }
  const auto addPiece = [&](size_t k) {
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
  };
  if (impl.steps.empty()) {
    for (size_t k = 0; k < impl.placed.size(); ++k) {
      addPiece(k);
    }
  } else {
    stitcher.addSteps(impl.steps, registers, addPiece);
  }
  return stitcher.finish(impl.outputs, registers);
}

}  // namespace faultline
