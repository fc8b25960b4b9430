#include "engine/ir/uses.h"

#include <algorithm>

#include "engine/support/prefetch.h"

namespace faultline {
namespace {

constexpr size_t kFewUses = 256;   // a list this long is searched in no time
constexpr size_t kManyUses = 512;  // from here on sorting pays
constexpr int kDeepest = 16;       // blocks: libtorch climbs them at every comparison of two places

using torch::jit::Block;

bool isDeep(const Block* block) {
  for (int depth = 0; depth <= kDeepest; ++depth) {
    const Node* owner = block->owningNode();
    if (owner == nullptr || owner->owningBlock() == nullptr) return false;
    block = owner->owningBlock();
  }
  return true;
}

// The node of `block` that `node` is or stands in; nullptr when it is not found a few blocks up.
const Node* enclosingIn(const Block* block, const Node* node) {
  for (int depth = 0; depth <= kDeepest && node != nullptr; ++depth) {
    if (node->owningBlock() == block) return node;
    if (node->owningBlock() == nullptr) return nullptr;
    node = node->owningBlock()->owningNode();
  }
  return nullptr;
}

// Where the uses of `value` are, in its own block and in order, each place once; empty where that is not
// worth it.
std::vector<const Node*> placesOf(const Value* value) {
  const Block* block = value->node()->owningBlock();
  if (block == nullptr || isDeep(block)) return {};
  std::vector<const Node*> places;
  places.reserve(value->uses().size());
  for (const Use& use : value->uses()) {
    const Node* place = enclosingIn(block, use.user);
    if (place == nullptr) return {};
    places.push_back(place);
  }
  const auto before = [](const Node* a, const Node* b) { return a != b && a->isBefore(b); };
  if (!std::is_sorted(places.begin(), places.end(), before)) std::sort(places.begin(), places.end(), before);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

}  // namespace

void UseSplitter::split(Value* value) {
  if (value->uses().size() <= kManyUses || owners_.count(value) != 0) return;
  const std::vector<const Node*> places = placesOf(value);
  split(value, value, places, 0, places.size());
}

// `from` has the uses at places [first, last).
void UseSplitter::split(Value* owner, Value* from, const std::vector<const Node*>& places, size_t first,
                        size_t last) {
  if (last - first < 2 || from->uses().size() <= kFewUses) return;
  const size_t middle = first + (last - first) / 2;
  Value* rest = owner->owningGraph()->create(torch::jit::prim::Uninitialized, 1)->output();
  stand_ins_.push_back(rest);
  owners_.emplace(rest, owner);
  from->replaceAllUsesAfterNodeWith(places[middle - 1], rest);
  split(owner, from, places, first, middle);
  split(owner, rest, places, middle, last);
}

Value* UseSplitter::owner(Value* value) const {
  const auto it = owners_.find(value);
  return it == owners_.end() ? value : it->second;
}

UseSplitter::~UseSplitter() {
  for (Value* stand_in : stand_ins_) {
    stand_in->replaceAllUsesWith(owners_.at(stand_in));
    stand_in->node()->destroy();
  }
}

void replaceUses(const std::vector<Replacement>& replacements) {
  UseSplitter splitter;
  for (const Replacement& replacement : replacements)
    splitter.split(replacement.use.user->input(replacement.use.offset));
  for (size_t i = 0; i < replacements.size(); ++i) {
    if (i + kAhead < replacements.size()) {
      prefetch(replacements[i + kAhead].use.user);
      prefetch(replacements[i + kAhead].with);
    }
    replacements[i].use.user->replaceInput(replacements[i].use.offset, replacements[i].with);
  }
}

void replaceAllUses(Value* from, Value* to) {
  if (from->uses().size() <= kManyUses) return from->replaceAllUsesWith(to);
  std::vector<Replacement> all;
  all.reserve(from->uses().size());
  for (const Use& use : from->uses()) all.push_back({use, to});
  replaceUses(all);
}

}  // namespace faultline
