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
  first_included_.push_back(-1);
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
  int32_t* last = &first_included_[static_cast<size_t>(b)];
  while (*last >= 0) last = &included_[static_cast<size_t>(*last)].next;
  *last = first_included_[static_cast<size_t>(a)];
  first_included_[static_cast<size_t>(a)] = first_included_[static_cast<size_t>(b)];
  first_included_[static_cast<size_t>(b)] = -1;
}

void Regions::include(RegionId region, RegionId part) {
  region = find(region);
  if (region == find(part)) return;
  int32_t& first = first_included_[static_cast<size_t>(region)];
  included_.push_back({part, first});
  first = static_cast<int32_t>(included_.size()) - 1;
}

void Regions::escape(RegionId region) {
  // What it includes escapes with it; what is included later is caught by the closure.
  unite(kWildcard, region);
}

c10::ArrayRef<RegionId> Regions::closure(RegionId region) {
  while (true) {
    region = find(region);
    // Most include nothing, and are their own representative.
    if (first_included_[static_cast<size_t>(region)] < 0) return parent_[static_cast<size_t>(region)];
    closures_.resize(parent_.size());
    std::vector<RegionId>& known = closures_[static_cast<size_t>(region)];
    if (!known.empty()) return known;
    std::vector<RegionId> seen = {region};
    for (size_t i = 0; i < seen.size() && seen.size() <= kLargestClosure; ++i) {
      for (int32_t next = first_included_[static_cast<size_t>(seen[i])]; next >= 0;
           next = included_[static_cast<size_t>(next)].next) {
        const RegionId root = find(included_[static_cast<size_t>(next)].part);
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
