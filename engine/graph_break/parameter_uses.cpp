#include "engine/graph_break/parameter_uses.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/autodiff/differentiability.h"
#include "engine/ir/nearest.h"

namespace faultline {

namespace {

std::optional<int64_t> bytesOf(const c10::TensorType& type) {
  const auto sizes = type.sizes().concrete_sizes();
  if (!sizes || !type.scalarType()) {
    return std::nullopt;
  }
  auto bytes = static_cast<int64_t>(c10::elementSize(*type.scalarType()));
  for (int64_t size : *sizes) {
    bytes *= size;
  }
  return bytes;
}

// Top-level nodes that a backward from all results of the graph may come to.
std::vector<bool> reachedNodes(const GraphFacts& facts) {
  const WorkingCopy& work = facts.work;
  std::vector<bool> reached(work.nodes.size(), false);
  for (size_t i = work.nodes.size(); i-- > 0;) {
    const Node* node = work.nodes[i];
    // What it writes may be read through another name.
    bool any = facts.nodes[i].barrier;
    for (size_t k = 0; !any && k < node->outputs().size(); ++k) {
      if (!carriesGradient(node, k) || !mayHoldTensor(*node->outputs()[k]->type())) {
        continue;
      }
      const auto& uses = node->outputs()[k]->uses();
      any = std::any_of(uses.begin(), uses.end(), [&](const torch::jit::Use& use) {
        return use.user == work.graph->return_node() ||
               (reached[work.topLevel(use.user)] && passesGradient(use.user, use.offset));
      });
    }
    reached[i] = any;
  }
  return reached;
}

// Opened Ifs and Loops hand the very object on: the values that are it behind `use`.
void addHandedOn(const WorkingCopy& work, const torch::jit::Use& use, std::vector<const Value*>& same) {
  if (!work.opensAny() || use.user == work.graph->return_node()) {
    return;
  }
  auto add = [&same](const Value* value) {
    if (std::find(same.begin(), same.end(), value) == same.end()) {
      same.push_back(value);
    }
  };
  const Node* owner =
      use.user->kind() == torch::jit::prim::Return ? use.user->owningBlock()->owningNode() : use.user;
  const auto at = work.index.find(owner);
  if (at == work.index.end() || !work.opened[at->second]) {
    return;
  }
  const bool loop = owner->kind() == torch::jit::prim::Loop;
  const size_t before = !loop ? 0 : owner == use.user ? 2 : 1;  // trip count and condition are handed nowhere
  if ((!loop && owner == use.user) || use.offset < before) {
    return;
  }
  add(owner->outputs()[use.offset - before]);
  if (loop) {
    add(owner->blocks()[0]->inputs()[use.offset - before + 1]);
  }
}

// What packs values up hands on the very object, and what takes a list or tuple apart that was packed up
// gives it back: where it goes from there is where it is used.
class Packing {
 public:
  // Whether `use`, of a value that is the parameter or holds it, does no more than that.
  bool handsOn(const torch::jit::Use& use, std::vector<const Value*>& same) {
    const Node* node = use.user;
    switch (node->kind()) {
      case torch::jit::prim::ListConstruct:
      case torch::jit::prim::TupleConstruct:
        if (!isOnlyRead(node->output())) {
          return false;
        }
        slots_[node->output()].push_back(use.offset);
        add(node->output(), same);
        return true;
      case torch::jit::prim::ListUnpack:
      case torch::jit::prim::TupleUnpack: {
        auto slots = slots_.find(node->input());
        if (slots == slots_.end()) {
          return false;
        }
        for (size_t slot : slots->second) {
          add(node->outputs().at(slot), same);
        }
        return true;
      }
      default:
        return false;
    }
  }

 private:
  static void add(const Value* value, std::vector<const Value*>& same) {
    if (std::find(same.begin(), same.end(), value) == same.end()) {
      same.push_back(value);
    }
  }

  // By ops that stand beside what packed it, and change nothing of it.
  static bool isOnlyRead(const Value* packed) {
    return std::all_of(packed->uses().begin(), packed->uses().end(), [&](const torch::jit::Use& use) {
      const auto* schema = use.user->maybeSchema();
      return use.user->kind() != torch::jit::prim::Return &&
             use.user->owningBlock() == packed->node()->owningBlock() &&
             (schema == nullptr || !schema->is_mutable());
    });
  }

  std::unordered_map<const Value*, std::vector<size_t>> slots_;  // where in it the parameter stands
};

}  // namespace

std::vector<ParameterUse> parameterUses(const GraphFacts& facts) {
  const WorkingCopy& work = facts.work;
  const std::vector<bool> reached = reachedNodes(facts);
  std::vector<ParameterUse> result;
  for (const Value* input : work.graph->inputs()) {
    auto type = work.input_types[input->offset()]->cast<c10::TensorType>();
    if (!type || !type->requiresGrad().value_or(true)) {
      continue;
    }
    ParameterUse parameter;
    parameter.input = input->offset();
    parameter.name = work.input_names[input->offset()];
    parameter.bytes = bytesOf(*type);
    parameter.dtype = type->scalarType();
    parameter.device = type->device();
    std::vector<const Value*> same{input};
    std::vector<torch::jit::Use> uses;
    Packing packing;
    for (size_t s = 0; s < same.size(); ++s) {
      for (const auto& use : same[s]->uses()) {
        addHandedOn(work, use, same);
        if (!packing.handsOn(use, same)) {
          uses.push_back(use);
        }
      }
    }
    for (const auto& use : uses) {
      if (use.user == work.graph->return_node() || !passesGradient(use.user, use.offset)) {
        continue;
      }
      const size_t at = work.topLevel(use.user);
      if (work.opened[at]) {
        continue;  // hands it on
      }
      const size_t operand = use.user == work.nodes[at] ? use.offset : 0;
      if (reached[at] && (at < parameter.first || (at == parameter.first && operand < parameter.operand))) {
        parameter.first = at;
        parameter.operand = operand;
      }
    }
    result.push_back(std::move(parameter));
  }
  return result;
}

std::vector<ParameterUse> inReadyOrder(std::vector<ParameterUse> uses) {
  uses.erase(
      std::remove_if(uses.begin(), uses.end(), [](const ParameterUse& use) { return use.first == SIZE_MAX; }),
      uses.end());
  std::stable_sort(uses.begin(), uses.end(), [](const ParameterUse& a, const ParameterUse& b) {
    return a.first != b.first ? a.first > b.first : a.operand > b.operand;
  });
  return uses;
}

const ParameterUse* findParameter(const std::vector<ParameterUse>& uses, const std::string& name) {
  auto it = std::find_if(uses.begin(), uses.end(), [&](const ParameterUse& use) { return use.name == name; });
  return it == uses.end() ? nullptr : &*it;
}

tl::unexpected<Error> unknownParameter(const std::vector<ParameterUse>& uses, const std::string& name) {
  std::vector<std::string> names;
  for (const ParameterUse& use : uses) {
    names.push_back(use.name);
  }
  return fail(ErrorKind::Invalid,
              fmt::format("no parameter is named '{}'{}", name,
                          names.empty() ? ": no input requires grad" : nearestOrAll(name, names)));
}

}  // namespace faultline
