#include "engine/autodiff/reverse.h"

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <torch/csrc/jit/passes/constant_pooling.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/lower_tuples.h>
#include <torch/csrc/jit/runtime/symbolic_script.h>

#include "engine/autodiff/differentiability.h"
#include "engine/autodiff/own_formulas.h"
#include "engine/support/check.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Gradient;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;
using torch::jit::WithInsertPoint;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

namespace {

// What a formula gives: one value, or a tuple of them.
std::vector<Value*> unpacked(Graph& graph, const std::vector<Value*>& values) {
  if (values.size() != 1 || values[0]->type()->kind() != c10::TypeKind::TupleType) {
    return values;
  }
  if (values[0]->node()->kind() == prim::TupleConstruct) {
    return values[0]->node()->inputs().vec();
  }
  return graph.insertNode(graph.createTupleUnpack(values[0]))->outputs().vec();
}

bool isCopied(const Node* node) {
  return node->kind() == prim::Constant ||
         (node->kind() == prim::ListConstruct &&
          std::all_of(node->inputs().begin(), node->inputs().end(),
                      [](const Value* input) { return input->node()->kind() == prim::Constant; }));
}

class Reverser {
 public:
  explicit Reverser(std::shared_ptr<Graph> graph)
      : forward_(std::move(graph)),
        holder_(forward_->create(prim::Reverse, 0)),
        block_(holder_->addBlock()) {}

  Gradient make() {
    result_.f_real_outputs = forward_->outputs().size();
    putForwardsInPlace();
    buildBackward();
    torch::jit::LowerSimpleTuples(block_);
    dropDeadGradients();
    findCaptures();
    addTemporaries();
    liftBackward();
    holder_->destroy();
    result_.f = forward_;
    torch::jit::EliminateDeadCode(result_.f);
    torch::jit::EliminateDeadCode(result_.df);
    torch::jit::ConstantPooling(result_.df);
    return std::move(result_);
  }

 private:
  // A gradient of ours for one operand, with what its parameters are bound to; nullptr: the incoming
  // gradient.
  struct Own {
    const OwnFormula* formula;
    size_t operand;
    std::vector<Value*> arguments;
  };
  struct Step {
    std::string name;
    std::vector<Value*> operands, results;
    std::vector<Own> own;             // or:
    std::shared_ptr<Graph> backward;  // libtorch's
    Value* context = nullptr;         // what its forward keeps for it
  };

  void putForwardsInPlace() {
    std::vector<Node*> nodes;
    for (Node* node : forward_->nodes()) {
      nodes.push_back(node);
    }
    for (Node* node : nodes) {
      const auto outputs = node->outputs();
      if (std::none_of(outputs.begin(), outputs.end(),
                       [](const Value* value) { return value->requires_grad(); }) ||
          node->kind() == prim::Constant) {
        continue;
      }
      Step step;
      step.name = node->kind().toDisplayString();
      step.operands = node->inputs().vec();
      WithInsertPoint behind(node->next());
      const auto own = findOwnFormulas(node);
      if (!own.empty()) {
        step.results = outputs.vec();
        for (const OwnFormula* formula : own) {
          step.own.push_back(bound(*formula, node));
        }
      } else {
        const auto pair = hasFormula(node) ? torch::jit::gradientInfoForSchema(node->schema()) : std::nullopt;
        TORCH_CHECK(pair, "no formula for ", node->kind().toDisplayString());
        step.results =
            unpacked(*forward_, torch::jit::insertGraph(*forward_, *pair->forward, node->inputs()));
        FAULTLINE_CHECK(step.results.size() == outputs.size() + 1,
                        "a formula's forward gives its context too");
        step.context = step.results.back();
        step.results.pop_back();
        for (size_t i = 0; i < outputs.size(); ++i) {
          step.results[i]->setType(outputs[i]->type());
          outputs[i]->replaceAllUsesWith(step.results[i]);
        }
        step.backward = pair->backward;
      }
      steps_.push_back(std::move(step));
    }
  }

  Own bound(const OwnFormula& formula, Node* node) {
    Own own{&formula, 0, {}};
    const auto& arguments = node->schema().arguments();
    auto operand = [&](std::string_view name) {
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].name() == name) {
          return i;
        }
      }
      FAULTLINE_CHECK(false, "a formula of ours is about arguments that exist");
      return arguments.size();
    };
    own.operand = operand(formula.operand);
    std::istringstream names{std::string(formula.parameters)};
    for (std::string name; names >> name;) {
      name.resize(name.size() - (name.back() == '?' ? 1 : 0));
      const size_t end = name.rfind('_');
      const std::string suffix = end == std::string::npos ? "" : name.substr(end);
      if (name == "grad") {
        own.arguments.push_back(nullptr);
      } else if (name == "result") {
        own.arguments.push_back(node->output(0));
      } else if (name == "result1") {
        own.arguments.push_back(node->output(1));
      } else if (suffix == "_size") {
        own.arguments.push_back(sizeOf(node->input(operand(name.substr(0, end)))));
      } else if (suffix == "_sum") {
        own.arguments.push_back(
            forward_->insert(c10::Symbol::fromQualString("aten::_size_if_not_equal"),
                             {sizeOf(node->input(operand(name.substr(0, end)))), sizeOf(node->output(0))}));
      } else {
        own.arguments.push_back(node->input(operand(name)));
      }
    }
    return own;
  }

  Value* sizeOf(Value* tensor) {
    Value*& size = sizes_[tensor];
    if (!size) {
      size = forward_->insert(c10::aten::size, {tensor});
    }
    return size;
  }

  void buildBackward() {
    WithInsertPoint inside(block_);
    for (size_t i = 0; i < forward_->outputs().size(); ++i) {
      Value* output = forward_->outputs()[i];
      if (output->requires_grad()) {
        add(output, block_->addInput()->setType(output->type()));
        result_.df_input_vjps.push_back(i);
      }
    }
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      const std::vector<Value*> gradients = linear(*step);
      for (size_t i = 0; i < gradients.size(); ++i) {
        if (gradients[i]) {
          add(step->operands[i], gradients[i]);
        }
      }
    }
    for (size_t i = 0; i < forward_->inputs().size(); ++i) {
      Value* input = forward_->inputs()[i];
      auto it = gradients_.find(input);
      if (input->requires_grad() && it != gradients_.end()) {
        block_->registerOutput(it->second);
        result_.df_output_vjps.push_back(i);
      }
    }
  }

  // The gradients of the step's operands; nullptr where there is none.
  std::vector<Value*> linear(const Step& step) {
    // No gradient comes to it. Eager has its node all the same, but never runs it: a write to what the node
    // keeps must not throw, so it may not be kept here.
    if (std::none_of(step.results.begin(), step.results.end(),
                     [this](Value* result) { return gradients_.count(result) > 0; })) {
      return std::vector<Value*>(step.operands.size(), nullptr);
    }
    std::vector<Value*> incoming;
    for (Value* result : step.results) {
      incoming.push_back(of(result));
    }
    Node* gradient = forward_->insertNode(forward_->create(prim::GradOf, incoming, 0));
    gradient->s_(attr::name, step.name);
    Block* body = gradient->addBlock();
    std::vector<Value*> outgoing(step.operands.size(), nullptr);
    {
      WithInsertPoint inside(body);
      if (step.own.empty()) {
        std::vector<Value*> arguments{step.context};
        arguments.insert(arguments.end(), incoming.begin(), incoming.end());
        outgoing = unpacked(*forward_, torch::jit::insertGraph(*forward_, *step.backward, arguments));
        FAULTLINE_CHECK(outgoing.size() == step.operands.size(), "a formula gives a gradient per operand");
      }
      for (const Own& own : step.own) {
        if (step.operands[own.operand]->requires_grad()) {
          std::vector<Value*> arguments = own.arguments;
          std::replace(arguments.begin(), arguments.end(), static_cast<Value*>(nullptr), incoming[0]);
          outgoing[own.operand] =
              torch::jit::insertGraph(*forward_, *gradientGraph(*own.formula), arguments)[0];
        }
      }
    }
    for (size_t i = 0; i < outgoing.size(); ++i) {
      Value*& value = outgoing[i];
      if (!value || value->mustBeNone() || !step.operands[i]->requires_grad()) {
        value = nullptr;
        continue;
      }
      body->registerOutput(value);
      value = gradient->addOutput()->copyMetadata(value);
    }
    return outgoing;
  }

  Value* of(Value* value) {
    Value*& gradient = gradients_[value];
    if (!gradient) {
      gradient = forward_->insertNode(forward_->createAutogradZero())->output();
    }
    return gradient;
  }

  void add(Value* value, Value* gradient) {
    Value*& sum = gradients_[value];
    sum =
        sum ? forward_->insertNode(forward_->create(prim::AutogradAdd, {sum, gradient}))->output() : gradient;
  }

  void dropDeadGradients() {
    torch::jit::EliminateDeadCode(block_, [this](const std::unordered_set<const Value*>& live) {
      for (auto it = gradients_.begin(); it != gradients_.end();) {
        it = live.count(it->second) ? std::next(it) : gradients_.erase(it);
      }
    });
  }

  // A value of the forward that the backward uses.
  bool isOutside(const Value* value) const { return value->node()->owningBlock() == forward_->block(); }

  void collect(Block* block, std::unordered_set<Value*>& used) {
    auto look = [&](const auto& values) {
      for (Value* value : values) {
        if (isOutside(value) && !isCopied(value->node())) {
          used.insert(value);
        }
      }
    };
    for (Node* node : block->nodes()) {
      look(node->inputs());
      for (Block* inner : node->blocks()) {
        collect(inner, used);
      }
    }
    look(block->outputs());
  }

  void findCaptures() {
    std::unordered_set<Value*> used;
    collect(block_, used);
    for (size_t i = 0; i < forward_->inputs().size(); ++i) {
      if (used.count(forward_->inputs()[i])) {
        captures_.push_back(forward_->inputs()[i]);
        result_.df_input_captured_inputs.push_back(i);
      }
    }
    for (Node* node : forward_->nodes()) {
      for (Value* value : node->outputs()) {
        if (!used.count(value)) {
          continue;
        }
        captures_.push_back(value);
        const auto outputs = forward_->outputs();
        const auto it = std::find(outputs.begin(), outputs.begin() + real(), value);
        if (it != outputs.begin() + real()) {
          result_.df_input_captured_outputs.push_back(static_cast<size_t>(it - outputs.begin()));
        } else {
          result_.df_input_captured_outputs.push_back(forward_->registerOutput(value));
        }
      }
    }
  }

  std::ptrdiff_t real() const { return static_cast<std::ptrdiff_t>(result_.f_real_outputs); }

  // A second backward may send a kept temporary a gradient.
  void addTemporaries() {
    for (size_t i = result_.f_real_outputs; i < forward_->outputs().size(); ++i) {
      Value* temporary = forward_->outputs()[i];
      auto it = gradients_.find(temporary);
      if (it == gradients_.end()) {
        continue;
      }
      Value* before = it->second;
      Value* also = block_->addInput()->setType(temporary->type());
      Node* sum = forward_->create(prim::AutogradAdd, {also, also});
      sum->insertAfter(before->node());
      before->replaceAllUsesWith(sum->output());
      sum->replaceInput(1, before);
      result_.df_input_vjps.push_back(i);
    }
  }

  void liftBackward() {
    result_.df = std::make_shared<Graph>();
    Graph& backward = *result_.df;
    std::unordered_map<Value*, Value*> map;
    for (Value* input : block_->inputs()) {
      map[input] = backward.addInput()->copyMetadata(input);
    }
    for (Value* capture : captures_) {
      map[capture] = backward.addInput()->setType(capture->type());
    }
    std::function<Value*(Value*)> mapped = [&](Value* value) -> Value* {
      auto it = map.find(value);
      if (it != map.end()) {
        return it->second;
      }
      FAULTLINE_CHECK(isOutside(value) && isCopied(value->node()), "what a backward uses is captured");
      copyNode(value->node(), backward, mapped, map);
      return map.at(value);
    };
    for (Node* node : block_->nodes()) {
      copyNode(node, backward, mapped, map);
    }
    std::vector<Value*> outputs;
    for (Value* output : block_->outputs()) {
      outputs.push_back(mapped(output));
    }
    Node* tuple = backward.createTuple(outputs);
    backward.block()->appendNode(tuple);
    backward.registerOutput(tuple->output());
  }

  static void copyNode(Node* node, Graph& into, const std::function<Value*(Value*)>& mapped,
                       std::unordered_map<Value*, Value*>& map) {
    Node* copy = into.createClone(node, mapped);
    into.block()->appendNode(copy);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      map[node->outputs()[i]] = copy->outputs()[i];
    }
  }

  std::shared_ptr<Graph> forward_;
  Node* holder_;
  Block* block_;
  Gradient result_;
  std::vector<Step> steps_;
  std::unordered_map<Value*, Value*> gradients_;  // of values of the forward, in `block_`
  std::unordered_map<Value*, Value*> sizes_;
  std::vector<Value*> captures_;  // inputs, then outputs
};

}  // namespace

bool hasFormula(const Node* node) {
  const auto* schema = node->maybeSchema();
  return schema && node->blocks().empty() && !node->kind().is_prim() &&
         (hasOwnFormula(node) ||
          (torch::jit::isDifferentiable(node) && torch::jit::hasGradientInfoForSchema(*schema)));
}

Gradient reverse(std::shared_ptr<Graph> graph) { return Reverser(std::move(graph)).make(); }

}  // namespace faultline
