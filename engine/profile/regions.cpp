#include "engine/profile/regions.h"

#include <algorithm>

namespace faultline::profile {
namespace {

// Beyond this a set is made one region: joins nested in joins would otherwise cost their square.
constexpr size_t kLargestClosure = 16;

}  // namespace

Regions::Regions() { fresh(); }

RegionId Regions::fresh() {
  const RegionId id = static_cast<RegionId>(parent_.size());
  parent_.push_back(id);
  includes_.emplace_back();
  closures_.emplace_back();
  return id;
}

RegionId Regions::find(RegionId region) {
  RegionId root = region;
  while (parent_[static_cast<size_t>(root)] != root) root = parent_[static_cast<size_t>(root)];
  while (parent_[static_cast<size_t>(region)] != root) {
    RegionId next = parent_[static_cast<size_t>(region)];
    parent_[static_cast<size_t>(region)] = root;
    region = next;
  }
  return root;
}

void Regions::unite(RegionId a, RegionId b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);  // the wildcard stays its own representative
  parent_[static_cast<size_t>(b)] = a;
  auto& into = includes_[static_cast<size_t>(a)];
  auto& from = includes_[static_cast<size_t>(b)];
  into.insert(into.end(), from.begin(), from.end());
  from.clear();
}

void Regions::include(RegionId region, RegionId part) {
  region = find(region);
  if (region != find(part)) includes_[static_cast<size_t>(region)].push_back(part);
}

void Regions::escape(RegionId region) {
  // What it includes escapes with it; what is included later is caught by the closure.
  unite(kWildcard, region);
}

const std::vector<RegionId>& Regions::closure(RegionId region) {
  while (true) {
    region = find(region);
    std::vector<RegionId>& known = closures_[static_cast<size_t>(region)];
    if (!known.empty()) return known;
    std::vector<RegionId> seen = {region};
    for (size_t i = 0; i < seen.size() && seen.size() <= kLargestClosure; ++i) {
      for (RegionId part : includes_[static_cast<size_t>(seen[i])]) {
        const RegionId root = find(part);
        if (std::find(seen.begin(), seen.end(), root) == seen.end()) seen.push_back(root);
      }
    }
    if (seen.size() <= kLargestClosure) {
      std::sort(seen.begin(), seen.end());
      known = std::move(seen);
      return known;
    }
    for (RegionId other : seen) unite(region, other);
    // Closures computed before the union may hold representatives that are none any more.
    for (auto& closure : closures_) closure.clear();
  }
}

}  // namespace faultline::profile
