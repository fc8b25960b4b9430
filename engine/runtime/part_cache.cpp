#include "engine/runtime/part_cache.h"

#include <c10/util/hash.h>

#include "faultline/ir.h"

namespace faultline {
namespace {

// Of ops and how they are wired; types and attributes are left to the comparison. nullopt: not to be shared.
std::optional<size_t> shapeOf(const Graph& graph, const InputMask& expected) {
  size_t hash = graph.inputs().size();
  auto add = [&](size_t part) { hash = c10::hash_combine(hash, part); };
  std::unordered_map<const Value*, size_t> place;
  auto define = [&](const Value* value) { place.emplace(value, place.size()); };
  for (const Value* input : graph.inputs()) define(input);
  for (const Node* node : graph.nodes()) {
    if (!node->blocks().empty() || (node->kind() == torch::jit::prim::Constant &&
                                    node->output()->type()->kind() == c10::TypeKind::TensorType)) {
      return std::nullopt;
    }
    add(node->kind());
    for (const Value* input : node->inputs()) add(place.at(input));
    for (const Value* output : node->outputs()) define(output);
  }
  for (const Value* output : graph.outputs()) add(place.at(output));
  for (bool grad : expected) add(grad ? 1 : 2);
  return hash;
}

}  // namespace

std::shared_ptr<const RunnablePart> PartCache::get(std::shared_ptr<Graph> graph, bool compile,
                                                   const InputMask& expected, Guard guard,
                                                   const InputMask& open) {
  const std::optional<size_t> shape = compile ? shapeOf(*graph, expected) : std::nullopt;
  if (shape) {
    const auto [first, last] = parts_.equal_range(*shape);
    for (auto it = first; it != last; ++it) {
      const RunnablePart& made = *it->second;
      if (made.expected() == expected && made.guard() == guard && made.open() == open &&
          graphsEqual(*made.graph(), *graph)) {
        return it->second;
      }
    }
  }
  auto part = std::make_shared<const RunnablePart>(std::move(graph), compile, expected, guard, open);
  if (shape && part->compiled()) {
    parts_.emplace(*shape, part);
  }
  return part;
}

}  // namespace faultline
