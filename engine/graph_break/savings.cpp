#include "engine/graph_break/savings.h"

namespace faultline {
namespace {

struct PieceCost {
  int64_t nodes = 0;
  int64_t captured = 0;
  int64_t bytes = 0;
  int64_t unsized = 0;
};

int64_t countOps(const torch::jit::Block* block) {
  int64_t count = 0;
  for (const Node* node : block->nodes()) {
    count += node->kind() == torch::jit::prim::Constant ? 0 : 1;
    for (const torch::jit::Block* inner : node->blocks()) count += countOps(inner);
  }
  return count;
}

class PartCost {
 public:
  PartCost(const WorkingCopy& work, const Part& part, const KnownGradients& known)
      : work_(work), part_(part) {
    for (size_t k = 0; k < work.nodes.size(); ++k) {
      const std::vector<KnownGradient>& operands = known[work.placeAmongAll(k)];
      for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i].bytes) bytes_.emplace(work.nodes[k]->input(i), *operands[i].bytes);
      }
    }
  }

  PieceCost of(const PieceGradient& gradient) const {
    PieceCost cost;
    cost.nodes = countOps(gradient.backward->block());
    const auto places = placesIn(*gradient.forward);
    size_t capture = 0;
    for (const size_t input : gradient.captured_inputs) add(part_.inputs[input], gradient, capture++, cost);
    for (const size_t output : gradient.captured_outputs) {
      const auto it = places.find(gradient.forward->outputs()[output]->node());
      const bool tensor = gradient.forward->outputs()[output]->type()->kind() == c10::TypeKind::TensorType;
      if (tensor) {
        const size_t result = gradient.forward->outputs()[output]->offset();
        add(it == places.end() ? nullptr : work_.nodes[it->second]->outputs()[result], gradient, capture,
            cost);
      }
      ++capture;
    }
    return cost;
  }

 private:
  void add(const Value* value, const PieceGradient& gradient, size_t capture, PieceCost& cost) const {
    // Sizes and the like are kept instead of the tensor.
    if (gradient.metadata_only[capture]) return;
    if (value != nullptr && value->type()->kind() != c10::TypeKind::TensorType) return;
    ++cost.captured;
    const auto it = value == nullptr ? bytes_.end() : bytes_.find(value);
    it == bytes_.end() ? ++cost.unsized : cost.bytes += it->second;
  }

  // The ops of the part among those of its differentiated forward, which has some of its own between them.
  std::unordered_map<const Node*, size_t> placesIn(const Graph& forward) const {
    std::unordered_map<const Node*, size_t> places;
    size_t next = 0;
    for (const Node* node : forward.nodes()) {
      for (size_t k = next; k < part_.nodes.size(); ++k) {
        const Node* own = work_.nodes[part_.nodes[k]];
        if (own->kind() != node->kind() || own->outputs().size() != node->outputs().size()) continue;
        places.emplace(node, part_.nodes[k]);
        next = k + 1;
        break;
      }
    }
    return places;
  }

  const WorkingCopy& work_;
  const Part& part_;
  std::unordered_map<const Value*, int64_t> bytes_;
};

}  // namespace

void addSavings(const WorkingCopy& work, const Part& part, const RunnablePart& runnable,
                const InputMask& without, const KnownGradients& known, ApplyReport& report) {
  if (!anyOf(without)) return;
  const auto plain = differentiatePiece(*runnable.graph(), without);
  if (!plain) return;
  const PartCost costs(work, part, known);
  const PieceCost before = costs.of(*plain);
  const PartVariant* variant = runnable.expectedVariant();
  const PieceCost after = variant == nullptr ? PieceCost{} : costs.of(variant->gradient);
  report.backward_nodes_saved += before.nodes - after.nodes;
  report.captured_saved += before.captured - after.captured;
  report.captured_bytes_saved += before.bytes - after.bytes;
  report.captured_unsized += before.unsized - after.unsized;
}

}  // namespace faultline
