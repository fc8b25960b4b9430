// Which tensors may be touched together: a set of memory regions per tensor, grown while a program is walked.
//
// A region stands for what one place makes (or for all that came from outside: kWildcard). A region may
// include others: the result of an If includes what the arms return, `contiguous` includes its argument. Two
// tensors may be the same thing if their closures meet. Used twice: for objects (metadata) and for groups of
// views (gradients).
#pragma once
#include <cstdint>
#include <vector>

#include <c10/util/ArrayRef.h>

namespace faultline::profile {

using RegionId = int32_t;

class Regions {
 public:
  static constexpr RegionId kWildcard = 0;  // graph inputs, and all that escaped into what cannot be followed

  Regions();
  RegionId fresh();
  void include(RegionId region, RegionId part);
  // Everything that `region` may be is from now on one with the wildcard.
  void escape(RegionId region);

  // What `region` may be, as sorted representatives. Call when the walk is over; valid until the next call.
  c10::ArrayRef<RegionId> closure(RegionId region);

 private:
  RegionId find(RegionId region);
  void unite(RegionId a, RegionId b);

  struct Included {
    RegionId part;
    int32_t next;
  };
  std::vector<RegionId> parent_;
  std::vector<int32_t> first_included_;  // per region, the first of a list in included_; -1: none
  std::vector<Included> included_;
  std::vector<std::vector<RegionId>> closures_;  // of regions that include others; empty: not asked yet
};

}  // namespace faultline::profile
