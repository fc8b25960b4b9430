// Saved modules: the graph of `forward` with the module's tensors as inputs.
#include <fmt/format.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/csrc/jit/serialization/import.h>

#include "engine/support/check.h"
#include "generators/case/flatten.h"
#include "generators/case/model.h"
#include "generators/case/spec_of.h"

namespace faultline {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

// Values of small models stay numbers that a person can read.
constexpr int64_t kReadableElements = 4096;
// As base64 they still fit into a file of 64 MiB.
constexpr int64_t kMaxBytes = int64_t{32} << 20;

tl::unexpected<Error> unsupported(std::string message) {
  return fail(ErrorKind::Unsupported, std::move(message));
}

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Parameters and buffers in the order of their declaration, submodules where they stand, shared tensors once.
void collectTensors(const torch::jit::Module& module, const std::string& prefix,
                    std::vector<NamedTensor>& found) {
  c10::ClassTypePtr type = module.type();
  for (size_t slot = 0; slot < type->numAttributes(); ++slot) {
    const c10::IValue& value = module._ivalue()->getSlot(slot);
    std::string name = prefix + type->getAttributeName(slot);
    if (value.isModule()) {
      collectTensors(value.toModule(), name + ".", found);
    } else if (value.isTensor() && value.toTensor().defined() &&
               (type->is_parameter(slot) || type->is_buffer(slot))) {
      bool known = std::any_of(found.begin(), found.end(), [&](const NamedTensor& other) {
        return other.tensor.is_same(value.toTensor());
      });
      if (!known) found.push_back({std::move(name), value.toTensor()});
    }
  }
}

// Turns uses of the module's attributes into uses of inputs and constants.
class AttributeLowering {
 public:
  AttributeLowering(Graph& graph, const torch::jit::Module& module) : graph_(graph) {
    objects_.emplace(graph.inputs().at(0), Object{module._ivalue(), ""});
    std::vector<NamedTensor> tensors;
    collectTensors(module, "", tensors);
    for (NamedTensor& tensor : tensors) addInput(std::move(tensor));
  }

  // Inputs stand behind those that the graph had, in the order of tensors(); the module is no input any more.
  Result<void> run() {
    if (auto lowered = lower(graph_.block()); !lowered) return lowered;
    for (auto at = doomed_.rbegin(); at != doomed_.rend(); ++at) (*at)->destroy();
    FAULTLINE_CHECK(!graph_.inputs().at(0)->hasUses(), "every use of the module is lowered or refused");
    graph_.eraseInput(0);
    return {};
  }

  const std::vector<NamedTensor>& tensors() const { return tensors_; }

 private:
  struct Object {
    c10::intrusive_ptr<c10::ivalue::Object> value;
    std::string path;
  };

  Value* addInput(NamedTensor tensor) {
    Value* input = graph_.addInput();
    input->setType(c10::TensorType::get());
    tensors_.push_back(std::move(tensor));
    return input;
  }

  Result<void> lower(Block* block) {
    for (Node* node : block->nodes()) {
      for (Value* input : node->inputs()) {
        if (objects_.count(input) == 0) continue;
        if (node->kind() != prim::GetAttr) return refuse(node, objects_.at(input).path);
        if (auto lowered = lowerGet(node, objects_.at(input)); !lowered) return lowered;
      }
      for (Block* inner : node->blocks()) {
        if (auto lowered = lower(inner); !lowered) return lowered;
      }
    }
    for (Value* output : block->outputs()) {
      if (objects_.count(output) != 0)
        return unsupported("forward returns a module or chooses one at run time");
    }
    return {};
  }

  static tl::unexpected<Error> refuse(const Node* node, const std::string& path) {
    std::string of = path.empty() ? "the module" : fmt::format("'{}'", path);
    if (node->kind() == prim::SetAttr) {
      return unsupported(fmt::format(
          "forward assigns attribute '{0}' of {1}: a graph can only write into its tensors; make it "
          "a buffer and write into that, as in self.{0}.add_(1)",
          node->s(torch::jit::attr::name), of));
    }
    if (node->kind() == prim::fork) {
      return unsupported(
          fmt::format("torch.jit.fork runs {}, which graphs cannot hold: call it, or fork a "
                      "function of tensors",
                      of));
    }
    return unsupported(fmt::format("{} takes {} as a value", node->kind().toQualString(), of));
  }

  Result<void> lowerGet(Node* node, const Object& object) {
    const std::string& attribute = node->s(torch::jit::attr::name);
    std::string name = object.path.empty() ? attribute : object.path + "." + attribute;
    c10::IValue value = object.value->getAttr(attribute);
    doomed_.push_back(node);
    if (value.isObject()) {
      objects_.emplace(node->output(), Object{value.toObject(), std::move(name)});
      return {};
    }
    torch::jit::WithInsertPoint guard(node);
    auto replacement = build(value, name);
    if (!replacement) return tl::make_unexpected(replacement.error());
    if ((*replacement)->node()->kind() == prim::ListConstruct && isWritten(node->output())) {
      return unsupported(fmt::format("forward writes into the list '{}', which a graph gets anew", name));
    }
    node->output()->replaceAllUsesWith(*replacement);
    return {};
  }

  // Saving keeps that tensors share memory, not that they are one: the list of weights that an LSTM holds is
  // of its parameters all the same.
  Value* inputOf(const at::Tensor& tensor) const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const at::Tensor& other = tensors_[i].tensor;
      if (other.is_same(tensor) ||
          (other.layout() == at::kStrided && tensor.layout() == at::kStrided && other.is_alias_of(tensor) &&
           other.scalar_type() == tensor.scalar_type() && other.sizes() == tensor.sizes() &&
           other.strides() == tensor.strides() && other.storage_offset() == tensor.storage_offset())) {
        return graph_.inputs().at(graph_.inputs().size() - tensors_.size() + i);
      }
    }
    return nullptr;
  }

  // An input for a tensor, a constant, or lists and tuples of these.
  Result<Value*> build(const c10::IValue& value, const std::string& name) {
    if (value.isTensor() && value.toTensor().defined()) {
      // A tensor that is neither parameter nor buffer is met here for the first time.
      Value* known = inputOf(value.toTensor());
      return known != nullptr ? known : addInput({name, value.toTensor()});
    }
    if (auto constant = torch::jit::tryInsertConstant(graph_, value)) return *constant;
    std::vector<Value*> parts;
    const auto addParts = [&](const auto& elements) -> Result<void> {
      for (const c10::IValue& element : elements) {
        auto part = build(element, fmt::format("{}.{}", name, parts.size()));
        if (!part) return tl::make_unexpected(part.error());
        parts.push_back(*part);
      }
      return {};
    };
    if (value.isList()) {
      if (auto added = addParts(value.toListRef()); !added) return tl::make_unexpected(added.error());
      return graph_.insertNode(graph_.createList(value.toList().elementType(), parts))->output();
    }
    if (value.isTuple()) {
      if (auto added = addParts(value.toTupleRef().elements()); !added) {
        return tl::make_unexpected(added.error());
      }
      return graph_.insertNode(graph_.createTuple(parts))->output();
    }
    return unsupported(fmt::format("attribute '{}' of type {} can be neither an input nor a constant", name,
                                   value.type()->repr_str()));
  }

  bool isWritten(const Value* list) {
    return std::any_of(list->uses().begin(), list->uses().end(), [](const torch::jit::Use& use) {
      const auto* schema = use.user->maybeSchema();
      if (schema == nullptr || use.offset >= schema->arguments().size()) return false;
      const auto* alias = schema->arguments()[use.offset].alias_info();
      return alias != nullptr && alias->isWrite();
    });
  }

  Graph& graph_;
  std::unordered_map<Value*, Object> objects_;
  std::vector<NamedTensor> tensors_;
  std::vector<Node*> doomed_;
};

// Tracing makes a tensor of the number in 0.5 * x, and saving forgets that it was one. libtorch takes it for
// a number again before any run, optimised or not (CanonicalizeOps); as a tensor it would widen results.
void restoreNumbers(Block* block) {
  static const torch::jit::OperatorSet operators{
      "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
      "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
      "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
      "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
  };
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) restoreNumbers(inner);
    if (!node->isMemberOf(operators)) continue;
    const auto constant = torch::jit::toIValue(node->input(1));
    if (!constant || !constant->isTensor() || !constant->toTensor().defined()) continue;
    const at::Tensor& number = constant->toTensor();
    // No op takes a bool for a number.
    if (number.dim() != 0 || number.scalar_type() == at::kBool) continue;
    const torch::jit::WithInsertPoint here(node);
    Node* tensor = node->input(1)->node();
    node->replaceInput(1, block->owningGraph()->insertConstant(number.item()));
    if (!tensor->hasUses()) tensor->destroy();
  }
}

// What can stand behind '%' and in `--input`: "fc1.weight" is "fc1_weight", "0.weight" is "p_0_weight".
std::string graphName(const std::string& name) {
  std::string out = name;
  for (char& c : out) {
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!word) c = '_';
  }
  return out.empty() || (out[0] >= '0' && out[0] <= '9') ? "p_" + out : out;
}

Result<void> describeTensors(Model& model, const std::vector<NamedTensor>& tensors) {
  int64_t elements = 0, bytes = 0;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.layout() != at::kStrided) {
      return unsupported(
          fmt::format("'{}' is sparse: only dense tensors can be inputs of a case", named.name));
    }
    elements += named.tensor.numel();
    bytes += static_cast<int64_t>(named.tensor.nbytes());
  }
  if (bytes > kMaxBytes) {
    return unsupported(
        fmt::format("the module's tensors take {} MiB: a case, which holds them, has room for {} MiB",
                    (bytes >> 20) + 1, kMaxBytes >> 20));
  }
  for (const NamedTensor& named : tensors) {
    auto spec = specOfTensor(named.tensor, /*readable=*/elements <= kReadableElements);
    if (!spec) return unsupported(fmt::format("'{}': {}", named.name, spec.error().message));
    model.graph->inputs().at(model.inputs.size())->setDebugName(graphName(named.name));
    model.inputs.push_back({named.name, std::move(*spec), true});
  }
  return {};
}

Result<Model> lowerModule(const torch::jit::Module& module) {
  auto method = module.find_method("forward");
  if (!method) return unsupported("this module has no method 'forward'");
  Model model;
  model.source_kind = "archive";
  model.graph = torch::jit::toGraphFunction(method->function()).graph()->copy();
  if (auto flat = flattenCalls(*model.graph); !flat) {
    // The place is one in the source that was saved, not in the archive.
    Error error = flat.error();
    if (error.where) error.message += fmt::format(": line {} of its source", error.where->line);
    error.where.reset();
    return tl::make_unexpected(std::move(error));
  }
  restoreNumbers(model.graph->block());
  AttributeLowering lowering(*model.graph, module);
  if (auto lowered = lowering.run(); !lowered) return tl::make_unexpected(lowered.error());
  const auto& arguments = method->function().getSchema().arguments();
  for (size_t i = 1; i < arguments.size(); ++i) {
    ModelInput input{arguments[i].name(), std::nullopt, false};
    if (arguments[i].default_value()) input.spec = specOfValue(*arguments[i].default_value());
    model.graph->inputs().at(i - 1)->setDebugName(input.name);
    model.inputs.push_back(std::move(input));
  }
  if (auto described = describeTensors(model, lowering.tensors()); !described) {
    return tl::make_unexpected(described.error());
  }
  return model;
}

// The first sentence of the first line that says anything; what follows is libtorch's stack, and guesses.
std::string firstLine(std::string_view what) {
  what.remove_prefix(std::min(what.find_first_not_of(" \n"), what.size()));
  // "[enforce fail at FILE:LINE] . what is wrong"
  constexpr std::string_view kEnforce = "[enforce fail at ";
  constexpr std::string_view kBehind = "] . ";
  if (const size_t end = what.find(kBehind); what.starts_with(kEnforce) && end != std::string_view::npos) {
    what.remove_prefix(end + kBehind.size());
  }
  std::string line(what.substr(0, what.find('\n')));
  line = line.substr(0, line.find(". "));
  return line.empty() ? "it holds no code" : line;
}

}  // namespace

Result<Model> modelFromArchive(const std::string& path) {
  try {
    return lowerModule(torch::jit::load(path, at::Device(at::kCPU)));
  } catch (const c10::Error& error) {
    return unsupported(
        "is no saved TorchScript module, or cut short: save it again with torch.jit.save, or copy it anew: " +
        firstLine(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return unsupported(
        "is no saved TorchScript module, or cut short: save it again with torch.jit.save, or copy it anew: " +
        firstLine(error.what()));
  }
}

}  // namespace faultline
