#include "generators/generate/profile_nodes.h"

#include <unordered_map>

#include <torch/csrc/autograd/grad_mode.h>

#include "engine/support/check.h"
#include "generators/generate/trial.h"

namespace faultline {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

namespace {

// Yes or no for many places at the price of one choice per 62 of them.
class Bits {
 public:
  Bits(Choices& choices, bool dense) : choices_(choices), dense_(dense) {}
  bool next() {
    if (left_ == 0) {
      bits_ = choices_.below(uint64_t{1} << 62);
      if (dense_) bits_ |= choices_.below(uint64_t{1} << 62);
      left_ = 62;
    }
    --left_;
    bool bit = (bits_ & 1) != 0;
    bits_ >>= 1;
    return bit;
  }

 private:
  Choices& choices_;
  bool dense_;
  uint64_t bits_ = 0;
  int left_ = 0;
};

bool isTensor(const Value* value) { return value->type()->kind() == c10::TypeKind::TensorType; }

Node* profileBefore(Graph& graph, Node* place, size_t input) {
  Value* value = place->input(input);
  Node* profile = graph.create(prim::profile, {value}, 1);
  profile->output()->setType(c10::TensorType::get());
  profile->ty_(attr::profiled_type, c10::TensorType::get());
  profile->insertBefore(place);
  place->replaceInput(input, profile->output());
  return profile;
}

void insertInto(Graph& graph, Block* block, Bits& bits, std::vector<Node*>& inserted) {
  auto profileInputs = [&](Node* node) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      bool constant = node->input(i)->node()->kind() == prim::Constant;
      if (isTensor(node->input(i)) && !constant && bits.next())
        inserted.push_back(profileBefore(graph, node, i));
    }
  };
  for (auto it = block->nodes().begin(); it != block->nodes().end(); ++it) {
    Node* node = *it;
    if (node->kind() == prim::Constant) continue;
    profileInputs(node);
    for (Block* inner : node->blocks()) insertInto(graph, inner, bits, inserted);
    if (node->hasAttribute(attr::Subgraph)) {
      Graph& subgraph = *node->g(attr::Subgraph);
      insertInto(subgraph, subgraph.block(), bits, inserted);
    }
  }
  profileInputs(block->return_node());
}

c10::TensorTypePtr observedType(const at::Tensor& tensor) {
  return c10::TensorType::create(tensor)->withRequiresGrad(tensor.requires_grad() &&
                                                           c10::GradMode::is_enabled());
}

void record(const Case& c, size_t runs) {
  std::unordered_map<const Node*, c10::TensorTypePtr> seen;
  auto note = [&](const Node& node, const Execution& execution) {
    if (node.kind() != prim::profile) return;
    c10::TensorTypePtr type = observedType(execution.get(node.input()).toTensor());
    auto [known, first] = seen.emplace(&node, type);
    if (!first) known->second = known->second->merge(*type);
  };
  for (size_t i = 0; i < runs; ++i) {
    FAULTLINE_CHECK(tryRun(c, c.runs[i], note).forward, "a run that ran throws with profile nodes");
  }
  for (auto& [node, type] : seen) const_cast<Node*>(node)->ty_(attr::profiled_type, type);
}

// A type that the tensor at hand does not have: another size, dtype or requires_grad.
c10::TensorTypePtr contradict(const c10::TensorTypePtr& type, Choices& choices) {
  auto sizes = type->sizes().concrete_sizes();
  switch (choices.below(3)) {
    case 0:
      if (sizes && !sizes->empty()) {
        (*sizes)[choices.below(sizes->size())] += 1;
        return type->withSizes(*sizes);
      }
      [[fallthrough]];
    case 1:
      return type->withRequiresGrad(!type->requiresGrad().value_or(false));
    default:
      return type->withScalarType(type->scalarType() == at::kDouble ? at::kFloat : at::kDouble);
  }
}

}  // namespace

const char* toString(ProfileTruth truth) {
  switch (truth) {
    case ProfileTruth::True:
      return "true";
    case ProfileTruth::Unseen:
      return "unseen";
    case ProfileTruth::Conflicting:
      return "conflicting";
  }
  return "";
}

ProfileTruth insertProfileNodes(Case& c, Choices& choices) {
  Choices::Span span(choices, "profile");
  std::vector<Node*> inserted;
  Bits places(choices, choices.flip(60));
  insertInto(*c.graph, c.graph->block(), places, inserted);
  record(c, std::min<size_t>(c.runs.size(), 1 + choices.below(2)));

  auto truth = static_cast<ProfileTruth>(choices.weighted({45, 25, 30}));
  if (truth == ProfileTruth::True) return truth;
  Bits spoiled(choices, false);
  for (Node* node : inserted) {
    // One in four: what is still right gives the answers that the rest must not disturb.
    if (!spoiled.next() || !spoiled.next()) continue;
    c10::TensorTypePtr type = node->ty(attr::profiled_type)->expect<c10::TensorType>();
    if (truth == ProfileTruth::Conflicting && type->scalarType()) {
      node->ty_(attr::profiled_type, contradict(type, choices));
    } else {
      node->ty_(attr::profiled_type, c10::TensorType::get());
    }
  }
  return truth;
}

}  // namespace faultline
